package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// runRootfs writes a base: an OCI archive with an image for each root file
// system. Each argument is ARCH=TAR, as the script base calls it; Linux is the
// only system. It prints the file and the digest of the index.
func runRootfs(ctx context.Context, args []string, out io.Writer) error {
	fs := flag.NewFlagSet("images rootfs", flag.ContinueOnError)
	file := fs.String("o", "", "write the `archive` to this file")
	fs.Usage = func() {
		fmt.Fprintln(fs.Output(), "usage: images rootfs -o ARCHIVE ARCH=TAR...")
		fs.PrintDefaults()
	}
	if err := fs.Parse(args); err != nil {
		return err
	}
	if *file == "" || fs.NArg() == 0 {
		fs.Usage()
		return flag.ErrHelp
	}
	src, err := openSource(ctx, ".")
	if err != nil {
		return err
	}
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, arg := range fs.Args() {
		arch, rootfs, ok := strings.Cut(arg, "=")
		if !ok {
			return fmt.Errorf("%q: give ARCH=TAR", arg)
		}
		platform := v1.Platform{OS: "linux", Architecture: arch}
		img, err := rootImage(rootfs, platform)
		if err != nil {
			return fmt.Errorf("%s: %w", arg, err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: img, Descriptor: v1.Descriptor{Platform: &platform}})
	}
	if err := os.MkdirAll(filepath.Dir(*file), 0o755); err != nil {
		return err
	}
	if err := writeArchive(*file, mutate.AppendManifests(empty.Index, mutate.IndexAddendum{Add: index}), src.time); err != nil {
		return err
	}
	digest, err := index.Digest()
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s %s\n", *file, digest)
	return nil
}

// rootImage returns an image with one layer, a root file system. It depends on that
// and on nothing else.
// It has no entry point and no user: builder.image sets those of each program.
func rootImage(rootfs string, platform v1.Platform) (v1.Image, error) {
	layer, err := tarball.LayerFromFile(rootfs, tarball.WithMediaType(types.OCILayer), tarball.WithCompressedCaching)
	if err != nil {
		return nil, err
	}
	img := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	img, err = mutate.Append(img, mutate.Addendum{Layer: layer, History: v1.History{CreatedBy: "deploy/images/base"}})
	if err != nil {
		return nil, err
	}
	config, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = platform.OS, platform.Architecture
	return mutate.ConfigFile(img, config)
}
