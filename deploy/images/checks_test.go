package main

import (
	"bytes"
	"debug/buildinfo"
	"encoding/json"
	"io"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// checkSBOM checks what SPDX 2.3 requires of a document, and compares it with what the
// binary says of itself.
func checkSBOM(t *testing.T, b *builder, data, binary []byte) {
	t.Helper()
	var d spdxDocument
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&d); err != nil {
		t.Fatal(err)
	}
	if d.Version != "SPDX-2.3" || d.License != "CC0-1.0" || d.ID != "SPDXRef-DOCUMENT" || d.Name == "" || len(d.Creation.Creators) == 0 {
		t.Errorf("head of the document: %+v", d)
	}
	if !regexp.MustCompile(`^https://[^#\s]+$`).MatchString(d.Namespace) {
		t.Errorf("namespace %q", d.Namespace)
	}
	for _, creator := range d.Creation.Creators {
		if !regexp.MustCompile(`^(Tool|Organization|Person): .+`).MatchString(creator) {
			t.Errorf("creator %q", creator)
		}
	}
	if at, err := time.Parse("2006-01-02T15:04:05Z", d.Creation.Created); err != nil || at.IsZero() {
		t.Errorf("created %q: %v", d.Creation.Created, err)
	}
	ids := map[string]bool{d.ID: true}
	purls := map[string]bool{}
	for _, p := range d.Packages {
		if ids[p.ID] || !regexp.MustCompile(`^SPDXRef-[a-zA-Z0-9.-]+$`).MatchString(p.ID) {
			t.Errorf("id %q is not one, or there twice", p.ID)
		}
		ids[p.ID] = true
		if p.Name == "" || p.Download == "" || p.License == "" || p.LicenseConcluded == "" || p.Copyright == "" || p.FilesAnalyzed {
			t.Errorf("package %+v", p)
		}
		for _, r := range p.References {
			if r.Category != "PACKAGE-MANAGER" || r.Type != "purl" || !strings.HasPrefix(r.Locator, "pkg:") {
				t.Errorf("reference %+v", r)
			}
			locator, err := url.PathUnescape(r.Locator)
			if err != nil {
				t.Error(err)
			}
			purls[locator] = true
		}
		for _, c := range p.Checksums {
			if c.Algorithm != "SHA256" || len(c.Value) != 64 {
				t.Errorf("checksum %+v", c)
			}
		}
	}
	described := 0
	for _, r := range d.Relationships {
		if !ids[r.From] || !ids[r.To] {
			t.Errorf("relationship between what is not there: %+v", r)
		}
		if r.Type == "DESCRIBES" && r.From == d.ID {
			described++
		}
	}
	if described != 1 {
		t.Errorf("it describes %d packages", described)
	}
	info, err := buildinfo.Read(bytes.NewReader(binary))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range info.Deps {
		version := m.Version
		if m.Replace != nil { // none of ours is replaced by anything but a folder of the commit
			version = b.source.version
		}
		if !purls["pkg:golang/"+m.Path+"@"+version] {
			t.Errorf("the SBOM lacks the module %s %s", m.Path, version)
		}
	}
	if !purls["pkg:golang/stdlib@"+strings.TrimPrefix(info.GoVersion, "go")] {
		t.Error("the SBOM lacks the standard library")
	}
}

// checkReferrer finds the SBOM in the archive as an artifact about the image.
func checkReferrer(t *testing.T, index v1.ImageIndex, d v1.Descriptor, img v1.Image, bom []byte) {
	t.Helper()
	artifact, err := index.Image(d.Digest)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := artifact.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	digest, err := img.Digest()
	if err != nil {
		t.Fatal(err)
	}
	if manifest.Subject == nil || manifest.Subject.Digest != digest || d.ArtifactType != spdxMediaType || d.Platform.OS != "unknown" {
		t.Errorf("the SBOM's manifest %+v, %+v is not about %s", d, manifest, digest)
	}
	layer, err := artifact.LayerByDigest(manifest.Layers[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	r, err := layer.Compressed()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, bom) {
		t.Errorf("the SBOM in the archive is not the one beside it: %v", err)
	}
}
