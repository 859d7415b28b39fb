package guard

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge/config"
	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/internal/pathpattern"
	"github.com/pfl-forge/pfl-forge/internal/pattern"
)

const (
	maxHops    = 40  // links that one path leads over, as in Linux
	maxImports = 500 // files that are read for what they import
	maxText    = 1 << 20
)

var (
	// imports matches the imports of files of instructions, as Claude Code and Gemini CLI
	// write them. It also matches such words in examples: a file too many costs a look.
	imports = pattern.New(`(?:^|[\s("'\[` + "`" + `])@([^\s"'()\[\]` + "`" + `]+)`)
	// includes and listed match the files of instructions in a configuration of OpenCode;
	// quoted has the single ones of a list.
	includes = pattern.New(`\{file:([^}]+)\}`)
	listed   = pattern.New(`"instructions"\s*:\s*\[([^\]]*)\]`)
	quoted   = pattern.New(`"([^"]+)"`)
)

// finding collects the places of one commit that count as protected.
type finding struct {
	set
	g     *Guard
	at    git.OID
	links map[string]string
	// read has the files whose imports were looked for.
	read map[string]bool
}

// places returns the files of a commit that links and imports make protected ones. Files are there
// by their names alone: a change may add one that instructions import already, or replace a
// directory on the way to it.
func (g *Guard) places(ctx context.Context, at git.OID, patterns []string) (set, error) {
	found, err := g.finder.Find(ctx, at)
	if err != nil {
		return nil, err
	}
	f := finding{set: set{}, g: g, at: at, links: map[string]string{}, read: map[string]bool{}}
	for _, one := range found {
		if one.Link {
			f.links[one.Path] = one.Content
		}
	}
	for _, p := range patterns { // a directory above a protected one may be a link
		fixed, _, _ := strings.Cut(p, "#")
		if i := strings.IndexAny(fixed, `*?[\`); i >= 0 {
			fixed = fixed[:strings.LastIndex(fixed[:i], "/")+1]
		}
		if strings.Contains(strings.TrimSuffix(fixed, "/"), "/") {
			f.follow(strings.TrimSuffix(fixed, "/"), p+" leads there")
		}
	}
	for _, one := range found {
		if !pathpattern.Any(patterns, one.Path) {
			continue
		}
		to := []string{one.Path}
		if one.Link {
			to = f.follow(one.Path, one.Path+" links there")
		}
		for _, file := range to {
			if config.Instructs(one.Path) {
				if err := f.imports(ctx, file); err != nil {
					return nil, err
				}
			}
		}
	}
	f.linksWithin()
	return f.set, nil
}

// linksWithin follows the links that are in directories of the set, until there are no more.
func (f *finding) linksWithin() {
	for before := -1; before != len(f.set); {
		before = len(f.set)
		for _, link := range slices.Sorted(maps.Keys(f.links)) {
			if f.holds(link) {
				f.follow(link, link+" links there")
			}
		}
	}
}

// follow adds the files that a path leads to over links, and returns the last one, if it leads
// anywhere in the repository. The path itself is not added.
func (f *finding) follow(p, why string) []string {
	for range maxHops {
		next, hop := f.hop(p)
		if !hop {
			return []string{p}
		}
		if next == "" {
			return nil
		}
		f.add(next, why)
		p = next
	}
	return nil
}

// hop returns where a path leads over its first link; nothing if that is outside of the repository.
func (f *finding) hop(p string) (next string, ok bool) {
	parts := strings.Split(p, "/")
	for i := range parts {
		link := path.Join(parts[:i+1]...)
		target, ok := f.links[link]
		if !ok {
			continue
		}
		next := path.Join(path.Dir(link), target, path.Join(parts[i+1:]...))
		if path.IsAbs(target) || next == "." || next == ".." || strings.HasPrefix(next, "../") {
			return "", true
		}
		return next, true
	}
	return p, false
}

// imports adds the files that a file imports, and those that these import.
func (f *finding) imports(ctx context.Context, file string) error {
	queue := []string{file}
	for len(queue) > 0 && len(f.read) < maxImports {
		file, queue = queue[0], queue[1:]
		if f.read[file] {
			continue
		}
		f.read[file] = true
		text, err := f.g.db.ReadFile(ctx, f.at, git.Path(file), maxText)
		if errors.Is(err, git.ErrNotFound) || errors.Is(err, git.ErrTooLarge) {
			continue
		}
		if err != nil {
			return fmt.Errorf("read what %s imports: %w", file, err)
		}
		for _, name := range importsOf(string(text)) {
			p := path.Join(path.Dir(file), name)
			why := file + " imports it"
			f.add(p, why)
			queue = append(queue, f.follow(p, why)...)
		}
	}
	return nil
}

// importsOf returns the paths that a text imports, as they stand there. Of a pattern it is the
// directory above the first wildcard.
func importsOf(text string) []string {
	var list []string
	add := func(p string) {
		if i := strings.IndexAny(p, "*?[{"); i >= 0 {
			p = p[:strings.LastIndex(p[:i], "/")+1]
		}
		if p = strings.TrimRight(p, ".,;:!?/"); p != "" && !path.IsAbs(p) && !strings.HasPrefix(p, "~") {
			list = append(list, p)
		}
	}
	for _, of := range []*pattern.Pattern{imports, includes} {
		for _, m := range of.FindAllStringSubmatch(text, -1) {
			add(m[1])
		}
	}
	for _, m := range listed.FindAllStringSubmatch(text, -1) {
		for _, q := range quoted.FindAllStringSubmatch(m[1], -1) {
			add(q[1])
		}
	}
	return list
}
