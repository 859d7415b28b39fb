// Command images writes the container images of pfl-forge as OCI archives, without a
// registry and without Docker: a static binary for each platform, on nothing or on a
// base that has git and a shell, and the list of its parts (SPDX).
//
//	go run ./deploy/images -base bin/images/base.tar
//	go run ./deploy/images rootfs -o bin/images/base.tar amd64=amd64.tar arm64=arm64.tar
//
// main.go has the flags, programs.go the list of programs, builder.go makes an
// archive of each. source.go builds the binaries, layer.go the files around
// them, base.go reads the base, rootfs.go makes one, sbom.go writes the lists
// of parts, and archive.go reads and writes tars of OCI layouts.
//
// The same commit and base give the same bytes, so every time is the commit's,
// lists are sorted, and nothing of the machine is in the result. README.md is
// the guide for those who make and run images; `make images` calls this.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "images:", err)
		os.Exit(1)
	}
}

// run makes the images that the arguments name, all of them without any, and prints what it
// wrote. With rootfs as the first argument it makes the base's root folder. Errors are printed
// by main. It is run in the repository, since the checkout is found from the working folder.
func run(ctx context.Context, args []string, out io.Writer) error {
	if len(args) > 0 && args[0] == "rootfs" {
		return runRootfs(ctx, args[1:], out)
	}
	fs := flag.NewFlagSet("images", flag.ContinueOnError)
	dir := fs.String("o", "bin/images", "write the archives to this `folder`")
	base := fs.String("base", "", "what images with git are made on: an OCI `archive`, or a reference with its digest")
	version := fs.String("version", "", "`version` of the images, instead of that of git describe")
	platforms := fs.String("platforms", "linux/amd64,linux/arm64", "`platforms` to build for")
	fs.Usage = func() {
		fmt.Fprintln(fs.Output(), "usage: images [flags] [NAME...]\n\nNAME is one of "+strings.Join(names(programs), ", ")+"; all of them if left out.")
		fs.PrintDefaults()
	}
	if err := fs.Parse(args); err != nil {
		return err
	}
	chosen, err := choose(fs.Args())
	if err != nil {
		return err
	}
	src, err := openSource(ctx, ".")
	if err != nil {
		return err
	}
	if *version != "" {
		src.version = *version
	}
	b := &builder{source: src, out: *dir, base: *base, log: out}
	if b.platforms, err = parsePlatforms(*platforms); err != nil {
		return err
	}
	return b.write(ctx, chosen)
}

// choose returns the programs of these names, all if there are none. They are in the order of the
// names. An unknown name is an error that lists those that there are.
func choose(wanted []string) ([]program, error) {
	if len(wanted) == 0 {
		return programs, nil
	}
	var chosen []program
	for _, name := range wanted {
		i := slices.IndexFunc(programs, func(p program) bool { return p.name == name })
		if i < 0 {
			return nil, fmt.Errorf("no image is called %q: there are %s", name, strings.Join(names(programs), ", "))
		}
		chosen = append(chosen, programs[i])
	}
	return chosen, nil
}

// parsePlatforms parses a list such as linux/amd64,linux/arm64. Another system than Linux, or a
// variant of a processor, is an error.
func parsePlatforms(list string) ([]v1.Platform, error) {
	var platforms []v1.Platform
	for text := range strings.SplitSeq(list, ",") {
		p, err := v1.ParsePlatform(text)
		if err != nil {
			return nil, err
		}
		if p.OS != "linux" || p.Architecture == "" || p.Variant != "" {
			return nil, fmt.Errorf("platform %q: give linux/ARCH", text)
		}
		platforms = append(platforms, *p)
	}
	return platforms, nil
}
