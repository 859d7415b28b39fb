package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strconv"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// sourceURL is where the source is, for labels and lists of parts.
const sourceURL = "https://github.com/pfl-forge/pfl-forge"

// builder makes the images of one commit. Its platforms and its base are the same for all of them.
type builder struct {
	source    *source
	platforms []v1.Platform
	out       string // folder of the archives
	base      string // archive or reference; empty: none was given
	log       io.Writer
}

// write writes the archives of some programs, and the SBOMs beside them. Names
// and the base are checked before the first program is built, because that
// takes minutes. The base is opened once for all.
func (b *builder) write(ctx context.Context, programs []program) error {
	var bases map[string]*baseImage
	for _, p := range programs {
		if _, err := reference(p, b.source.version); err != nil {
			return err
		}
		if !p.tools || bases != nil {
			continue
		}
		if b.base == "" {
			return fmt.Errorf("%s runs git and commands of a repository: -base is missing; deploy/images/README.md says how to make one", p.name)
		}
		var done func()
		var err error
		if bases, done, err = openBases(ctx, b.base, b.platforms); err != nil {
			return fmt.Errorf("base %s: %w", b.base, err)
		}
		defer done()
	}
	if err := os.MkdirAll(b.out, 0o755); err != nil {
		return err
	}
	for _, p := range programs {
		on := bases
		if !p.tools {
			on = nil
		}
		if err := b.writeOne(ctx, p, on); err != nil {
			return err
		}
	}
	return nil
}

// writeOne writes the archive of one program: an index with an image for each platform and the
// SBOMs, each of which refers to an image. bases is nil for a program that stands on nothing.
// What was written, with sizes and the digest of the index, is printed to the builder's log.
func (b *builder) writeOne(ctx context.Context, p program, bases map[string]*baseImage) error {
	ref, err := reference(p, b.source.version)
	if err != nil {
		return err
	}
	labels := b.labels(p)
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	index = mutate.Annotations(index, labels).(v1.ImageIndex)
	var boms []mutate.IndexAddendum
	for _, platform := range b.platforms {
		binary, info, err := b.source.build(ctx, p, platform)
		if err != nil {
			return err
		}
		on := bases[platform.String()]
		img, err := b.image(p, platform, binary, on)
		if err != nil {
			return err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: img, Descriptor: v1.Descriptor{Platform: &platform}})
		doc, err := newSBOM(b.source, p, platform, img, binary, info, on)
		if err != nil {
			return err
		}
		file := filepath.Join(b.out, fmt.Sprintf("%s-%s-%s.spdx.json", p.name, b.source.version, platform.Architecture))
		if err := os.WriteFile(file, doc, 0o644); err != nil {
			return err
		}
		bom, err := referrer(img, doc)
		if err != nil {
			return err
		}
		// No machine is of this platform, so nothing takes it for an image to run.
		boms = append(boms, mutate.IndexAddendum{Add: bom, Descriptor: v1.Descriptor{
			ArtifactType: spdxMediaType, Platform: &v1.Platform{OS: "unknown", Architecture: "unknown"},
		}})
		size, err := compressed(img)
		if err != nil {
			return err
		}
		fmt.Fprintf(b.log, "%s %s: binary %.1f MB, image %.1f MB\n", ref, platform, megabytes(int64(len(binary))), megabytes(size))
	}
	index = mutate.AppendManifests(index, boms...)
	// podman loads no archive that has more than one of these.
	all := mutate.AppendManifests(empty.Index, mutate.IndexAddendum{Add: index, Descriptor: v1.Descriptor{Annotations: map[string]string{
		"org.opencontainers.image.ref.name": ref,
		// containerd stores the image by this name, which is how a kubelet asks for it.
		"io.containerd.image.name": "docker.io/" + ref,
	}}})
	file := filepath.Join(b.out, p.name+"-"+b.source.version+".tar")
	if err := writeArchive(file, all, b.source.time); err != nil {
		return err
	}
	digest, err := index.Digest()
	if err != nil {
		return err
	}
	fmt.Fprintf(b.log, "%s %s@%s\n", file, ref, digest)
	return nil
}

// reference returns the name of an image. A tag that moves is refused: it does not tell
// which commit runs, and a kubelet asks a registry for latest at every start.
func reference(p program, version string) (string, error) {
	if version == "" || version == "latest" {
		return "", fmt.Errorf("version %q: an image has the version of its commit", version)
	}
	ref := "pfl-forge/" + p.name + ":" + version
	if _, err := name.NewTag("docker.io/"+ref, name.StrictValidation); err != nil {
		return "", fmt.Errorf("version %q: %w", version, err)
	}
	return ref, nil
}

// labels returns the labels of an image, by the names that OCI gives them. The index of an
// archive has the same as annotations. A label of the base with one of these names is replaced.
func (b *builder) labels(p program) map[string]string {
	return map[string]string{
		"org.opencontainers.image.title":    p.title,
		"org.opencontainers.image.source":   sourceURL,
		"org.opencontainers.image.revision": b.source.revision,
		"org.opencontainers.image.version":  b.source.version,
		"org.opencontainers.image.licenses": "Apache-2.0",
	}
}

// image returns the image of one platform: one layer, on the base's if there is
// one. The configuration is made anew and not taken from the base, but for labels:
// a base's entry point, variables and user would change how the program runs.
func (b *builder) image(p program, platform v1.Platform, binary []byte, on *baseImage) (v1.Image, error) {
	layer, err := newLayer(entriesOf(p, binary, on), b.source.time)
	if err != nil {
		return nil, err
	}
	img, labels, path := empty.Image, b.labels(p), "/usr/bin"
	if on != nil {
		img, path = on.image, "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
		labels["org.opencontainers.image.base.digest"] = on.digest.String()
	}
	img = mutate.ConfigMediaType(mutate.MediaType(img, types.OCIManifestSchema1), types.OCIConfigJSON)
	img, err = mutate.Append(img, mutate.Addendum{
		Layer:   layer,
		History: v1.History{Created: v1.Time{Time: b.source.time}, CreatedBy: "deploy/images " + p.name},
	})
	if err != nil {
		return nil, err
	}
	config, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.Created = v1.Time{Time: b.source.time}
	config.OS, config.Architecture, config.Variant = platform.OS, platform.Architecture, ""
	owned := maps.Clone(config.Config.Labels) // a team's, of its base
	if owned == nil {
		owned = map[string]string{}
	}
	maps.Copy(owned, labels)
	config.Config = v1.Config{
		User:       strconv.Itoa(user) + ":" + strconv.Itoa(user),
		Entrypoint: []string{"/usr/bin/" + p.file},
		Env:        []string{"PATH=" + path, "HOME=/" + home, "FORGE_STATE_DIR=/" + state},
		WorkingDir: "/",
		Volumes:    map[string]struct{}{"/" + state: {}, "/" + temp: {}},
		Labels:     owned,
	}
	return mutate.ConfigFile(img, config)
}

// compressed returns the size of an image's layers as they are transferred.
// It is in bytes, for the line that is printed.
func compressed(img v1.Image) (int64, error) {
	layers, err := img.Layers()
	if err != nil {
		return 0, err
	}
	var sum int64
	for _, l := range layers {
		size, err := l.Size()
		if err != nil {
			return 0, err
		}
		sum += size
	}
	return sum, nil
}

// megabytes returns a number of bytes in units of a million.
func megabytes(n int64) float64 { return float64(n) / 1e6 }

// hexSHA256 returns a checksum in the notation of SPDX: hexadecimal, in lower case.
func hexSHA256(data []byte) string { return fmt.Sprintf("%x", sha256.Sum256(data)) }
