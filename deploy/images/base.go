package main

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// baseImage is the image of a platform that images with git stand on. passwd
// and group are the files of these names, nil if the base has none. digest is
// the image's, by which its users name it in a label.
type baseImage struct {
	image         v1.Image
	digest        v1.Hash
	passwd, group []byte
	packages      []debPackage // of Debian; none if the base is made of something else
}

// openBases returns the base's image of each platform. It has to be there for all,
// with git and a shell. The function ends its use. The map is by the platform's
// name, such as linux/amd64. The error names the platform that is missing.
func openBases(ctx context.Context, from string, platforms []v1.Platform) (map[string]*baseImage, func(), error) {
	index, done, err := openBase(ctx, from)
	if err != nil {
		return nil, nil, err
	}
	bases := map[string]*baseImage{}
	for _, platform := range platforms {
		img, err := find(index, platform)
		if err == nil {
			bases[platform.String()], err = inspect(img)
		}
		if err != nil {
			done()
			return nil, nil, fmt.Errorf("%s: %w", platform, err)
		}
	}
	return bases, done, nil
}

// openBase reads an archive, or asks a registry. A reference without a digest is
// refused: the same commit would give other images tomorrow. A file of that name counts
// before a reference. A registry is asked with the login that docker or podman keeps.
func openBase(ctx context.Context, from string) (v1.ImageIndex, func(), error) {
	if _, err := os.Stat(from); err == nil {
		return openArchive(from)
	}
	ref, err := name.NewDigest(from)
	if err != nil {
		return nil, nil, fmt.Errorf("no such file, and no reference of the form NAME@sha256:DIGEST: %w", err)
	}
	index, err := remote.Index(ref, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain))
	return index, func() {}, err
}

// find looks for a platform's image, also in indexes that the index has; the first one that fits
// counts. Error: none fits. A variant of a processor, such as v8 of arm64, is not compared.
func find(index v1.ImageIndex, platform v1.Platform) (v1.Image, error) {
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, err
	}
	for _, d := range manifest.Manifests {
		switch {
		case d.MediaType.IsIndex():
			inner, err := index.ImageIndex(d.Digest)
			if err != nil {
				return nil, err
			}
			if img, err := find(inner, platform); err == nil {
				return img, nil
			}
		case d.MediaType.IsImage():
			img, err := index.Image(d.Digest)
			if err != nil {
				return nil, err
			}
			// What is attached to an image, as an SBOM, has no platform in its configuration.
			config, err := img.ConfigFile()
			if err == nil && config.OS == platform.OS && config.Architecture == platform.Architecture {
				return img, nil
			}
		}
	}
	return nil, errors.New("the base has no image for it")
}

// dpkgStatus is the file in which Debian lists the packages, relative to the root.
const dpkgStatus = "var/lib/dpkg/status"

// inspect reads those files of a base that we add to or look at.
// It reads the file system that all layers make together, and runs nothing of it.
func inspect(img v1.Image) (*baseImage, error) {
	digest, err := img.Digest()
	if err != nil {
		return nil, err
	}
	b := &baseImage{image: img, digest: digest}
	programs := map[string]bool{}
	files := mutate.Extract(img)
	defer files.Close()
	r := tar.NewReader(files)
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		switch clean := strings.TrimPrefix(path.Clean(h.Name), "/"); clean {
		case passwdFile:
			b.passwd, err = io.ReadAll(r)
		case groupFile:
			b.group, err = io.ReadAll(r)
		case dpkgStatus:
			b.packages, err = parseStatus(r)
		case "usr/bin/git", "usr/local/bin/git", "bin/git":
			programs["git"] = true
		case "usr/bin/sh", "bin/sh":
			programs["sh"] = true
		}
		if err != nil {
			return nil, err
		}
	}
	for _, needed := range []string{"git", "sh"} {
		if !programs[needed] {
			return nil, fmt.Errorf("the base has no %s", needed)
		}
	}
	return b, nil
}
