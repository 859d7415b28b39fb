package main

import (
	"bytes"
	"context"
	"debug/buildinfo"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// source is the commit that images are made of.
type source struct {
	root string // the repository's folder
	// version is that of git describe: a tag, or a tag and the way from it, or a commit.
	version  string
	revision string
	// time is the commit's: everything in an image has it, so that an image depends on
	// nothing but the commit.
	time time.Time
}

// location returns the commit in SPDX's notation.
func (s *source) location() string { return "git+" + sourceURL + "@" + s.revision }

// openSource returns the checkout that a folder is in. The images' version is its newest tag or
// its commit, with -dirty where files are not committed; their time is the commit's, so that the
// same commit makes the same image.
func openSource(ctx context.Context, dir string) (*source, error) {
	git := func(args ...string) (string, error) {
		return output(exec.CommandContext(ctx, "git", append([]string{"-C", dir}, args...)...))
	}
	root, err := git("rev-parse", "--show-toplevel")
	if err != nil {
		return nil, err
	}
	s := &source{root: root}
	if s.version, err = git("describe", "--tags", "--always", "--dirty"); err != nil {
		return nil, err
	}
	if s.revision, err = git("rev-parse", "HEAD"); err != nil {
		return nil, err
	}
	seconds, err := git("log", "-1", "--format=%ct")
	if err != nil {
		return nil, err
	}
	unix, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("the commit's time: %w", err)
	}
	s.time = time.Unix(unix, 0).UTC()
	return s, nil
}

// build links one program for a platform, and returns the binary and its modules. The versions are
// those of the program's own go.mod: a workspace would raise them to what any of its modules asks
// for.
//
// The environment's own settings of Go are overridden where they would change the bytes. A binary
// without the commit in it is an error, as its version could not be proven.
func (s *source) build(ctx context.Context, p program, platform v1.Platform) ([]byte, *buildinfo.BuildInfo, error) {
	dir, err := os.MkdirTemp("", "pfl-forge-image-")
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	file := filepath.Join(dir, p.file)
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=true", "-mod=readonly", "-ldflags=-s -w", "-o", file, p.main)
	cmd.Dir = filepath.Join(s.root, p.module)
	cmd.Env = append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0", "GOFLAGS=", "GOOS="+platform.OS, "GOARCH="+platform.Architecture,
		"GOAMD64=v1", "GOARM64=v8.0", "GOEXPERIMENT=")
	if _, err := output(cmd); err != nil {
		return nil, nil, fmt.Errorf("build %s for %s: %w", p.name, platform, err)
	}
	binary, err := os.ReadFile(file)
	if err != nil {
		return nil, nil, err
	}
	info, err := buildinfo.Read(bytes.NewReader(binary))
	if err != nil {
		return nil, nil, err
	}
	if stamped := setting(info, "vcs.revision"); stamped != s.revision {
		return nil, nil, fmt.Errorf("build %s: its binary tells commit %q, not %s: Go does not see the commit in a linked worktree, make images in a clone",
			p.name, stamped, s.revision)
	}
	return binary, info, nil
}

// setting returns a fact that the go command wrote into a binary about its build.
// It is empty if there is none of this key.
func setting(info *buildinfo.BuildInfo, key string) string {
	for _, s := range info.Settings {
		if s.Key == key {
			return s.Value
		}
	}
	return ""
}

// output runs a command and returns its standard output, trimmed; an error holds the
// other.
func output(cmd *exec.Cmd) (string, error) {
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", filepath.Base(cmd.Path), cmd.Args[1], err, strings.TrimSpace(stderr.String()))
	}
	return strings.TrimSpace(string(out)), nil
}
