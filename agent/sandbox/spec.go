// Package sandbox limits which parts of the machine a command reaches: it gets a file
// system that is put together for it, a process table of its own and, optionally, a
// network of its own.
//
// A Spec lists the visible paths and the network. Package process starts a supervisor
// in new namespaces with Spec.Attributes; there Spec.Enter builds the file system, and
// Restrict drops all privileges before the command starts. The functions of view.go
// return the mounts that most programs need.
//
// It uses the kernel's namespaces, needs no installed program, and no privileges where
// the kernel gives user namespaces to everyone. It works on Linux only; see Available.
package sandbox

import (
	"net"
	"path/filepath"
	"slices"
	"strings"
)

// Spec says which files, processes and networks a command reaches.
type Spec struct { //nolint:recvcheck // With returns a changed copy
	// Mounts lists the visible paths, in any order. Beside them only /dev and /proc
	// exist.
	Mounts  []Mount
	Network Network
	// Processes is the most processes at once; 0 means DefaultProcesses.
	Processes int

	// Listen is an address of loopback inside, where that is another one than outside: see
	// Listens. Serve is called outside with a listener on it and must return at once; the
	// listener is closed when the command has ended.
	Listen string
	// Serve must be set if Listen is.
	Serve func(net.Listener) `json:"-"`
}

// Listens reports whether a sandbox of this machine has to listen on Listen: with
// NetworkFull its loopback is that of the machine, where the service itself listens. A
// sandbox elsewhere always has a loopback of its own.
func (s *Spec) Listens() bool { return s.Listen != "" && s.Network == NetworkNone }

// Mount is a path that exists inside, with everything below it.
type Mount struct {
	// Path is absolute and clean, and the same inside as outside.
	Path string
	Kind Kind
	// To is the target of a Link. For Writable and ReadOnly it is another path outside,
	// to be shown at Path; absolute. For Layered it is the directory outside that takes what is
	// written; beside it is Work.
	To string
	// Below are the directories outside that a Layered one shows where nothing was written to it;
	// the first one wins. All exist.
	Below []string
	// Cache says that the content may as well be missing: it only saves time.
	Cache bool
}

// Work returns the directory that the system needs for a Layered mount. It must exist, in the file
// system of To.
func (m *Mount) Work() string { return m.To + ".work" }

// Kind says what can be done with a Mount.
type Kind string

// The kinds. If a path has two, the later one in this list counts. A deeper mount
// decides for the paths below it.
const (
	Link     Kind = "link" // a symbolic link
	ReadOnly Kind = "read_only"
	Writable Kind = "writable"
	// Layered is a directory that shows others, which are only read: writes go elsewhere. Where the
	// file system of To cannot be such a layer, it begins empty.
	Layered Kind = "layered"
	Hidden  Kind = "hidden" // an empty directory, or file, that cannot be written to
)

// Network says which network a command reaches.
type Network string

// The networks.
const (
	NetworkFull Network = "full" // the machine's
	NetworkNone Network = "none" // a loopback of its own
)

// DefaultProcesses is the most processes and threads in a sandbox at once. A build uses
// a few hundred.
const DefaultProcesses = 16 << 10

// With returns a copy of the spec with more mounts.
func (s Spec) With(mounts ...Mount) Spec {
	s.Mounts = slices.Concat(s.Mounts, mounts)
	return s
}

// rank returns the lock among kinds for one path.
func (k Kind) rank() int { return slices.Index([]Kind{Link, ReadOnly, Writable, Layered, Hidden}, k) }

// mountPlan returns the mounts in the order in which they have to be made, outer ones
// before inner ones, without those that change nothing.
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
			continue // nothing to hide, or visible already
		}
		out = append(out, m)
	}
	return out
}

// sortKey makes a directory sort right before its content.
func sortKey(path string) string { return strings.ReplaceAll(path, "/", "\x00") }

// innermostMount returns the innermost mount of list, which is sorted, that contains
// path.
func innermostMount(list []Mount, path string) (Mount, bool) {
	for _, m := range slices.Backward(list) {
		if m.Kind != Link && within(m.Path, path) {
			return m, true
		}
	}
	return Mount{}, false
}

// within reports whether path is dir or below it.
func within(dir, path string) bool {
	return dir == "/" || path == dir || strings.HasPrefix(path, dir+"/")
}

// Visible reports whether a path can be seen inside.
func (s *Spec) Visible(path string) bool {
	m, ok := innermostMount(s.mountPlan(), filepath.Clean(path))
	return ok && m.Kind != Hidden
}
