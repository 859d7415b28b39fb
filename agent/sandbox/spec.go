// Package sandbox shows a command only what it needs of the machine: a file system
// that is put together for it, a process table of its own, and, where that is wanted,
// a network of its own.
//
// It uses namespaces of the kernel, without any program that has to be installed and
// without privileges where the kernel gives user namespaces to everybody. A Spec says
// what there is; package process starts a command in it.
package sandbox

import (
	"net"
	"path/filepath"
	"slices"
	"strings"
)

// Spec is what a command sees and reaches.
type Spec struct { //nolint:recvcheck // With returns another one, so it takes a copy
	Mounts    []Mount // in any order
	Network   Network
	Processes int // at once; 0 means DefaultProcesses

	// Listen is an address of loopback on which Serve answers inside, when Network is
	// NetworkNone. Serve returns at once; the listener is closed when the command ended.
	Listen string
	Serve  func(net.Listener) `json:"-"`
}

// Mount is a path that exists inside, with everything below it.
type Mount struct {
	Path string // absolute and clean; the same inside as outside
	Kind Kind
	To   string // of a Link; of a Writable or ReadOnly: what is seen there instead, absolute
}

// Kind is what a Mount offers.
type Kind string

// The kinds. Where two are given for one path, the later one in this list holds; what
// is deeper holds for what is below it.
const (
	Link     Kind = "link" // a symbolic link
	ReadOnly Kind = "read_only"
	Writable Kind = "writable"
	Hidden   Kind = "hidden" // an empty directory, or file, that nobody can write to
)

// Network is what a command reaches.
type Network string

// The networks.
const (
	NetworkFull Network = "full" // the machine's
	NetworkNone Network = "none" // a loopback of its own
)

// DefaultProcesses is how many processes and threads a sandbox may have at once. A
// build uses some hundred.
const DefaultProcesses = 16 << 10

// With returns the spec with more mounts.
func (s Spec) With(mounts ...Mount) Spec {
	s.Mounts = slices.Concat(s.Mounts, mounts)
	return s
}

// rank orders the kinds of one path.
func (k Kind) rank() int { return slices.Index([]Kind{Link, ReadOnly, Writable, Hidden}, k) }

// mountPlan returns the mounts in the order in which they have to be made, without those
// that change nothing: an outer one comes before what is in it.
func (s *Spec) mountPlan() []Mount {
	byPath := map[string]Mount{}
	for _, m := range s.Mounts {
		if old, ok := byPath[m.Path]; !ok || m.Kind.rank() > old.Kind.rank() {
			byPath[m.Path] = m
		}
	}
	var all []Mount
	for _, m := range byPath {
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b Mount) int { return strings.Compare(sortKey(a.Path), sortKey(b.Path)) })
	var out []Mount
	for _, m := range all {
		outer, covered := innermostMount(out, m.Path)
		switch {
		case m.Kind == Hidden && !covered,
			covered && m.To == "" && outer.To == "" && m.Kind == outer.Kind,
			covered && m.Kind == Link && outer.Kind != Hidden:
			continue // there is nothing to hide, or it is there already
		}
		out = append(out, m)
	}
	return out
}

// sortKey makes a directory come right before what is in it.
func sortKey(path string) string { return strings.ReplaceAll(path, "/", "\x00") }

// innermostMount returns the innermost mount that a path is in.
func innermostMount(list []Mount, path string) (Mount, bool) {
	for _, m := range slices.Backward(list) {
		if m.Kind != Link && within(m.Path, path) {
			return m, true
		}
	}
	return Mount{}, false
}

// within reports whether a path is a directory or below it.
func within(dir, path string) bool {
	return dir == "/" || path == dir || strings.HasPrefix(path, dir+"/")
}

// Visible reports whether a path can be seen inside.
func (s *Spec) Visible(path string) bool {
	m, ok := innermostMount(s.mountPlan(), filepath.Clean(path))
	return ok && m.Kind != Hidden
}
