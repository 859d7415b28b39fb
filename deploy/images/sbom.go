package main

import (
	"crypto/sha1" //nolint:gosec // names parts, protects nothing
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"runtime/debug"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// spdxMediaType is the type of the documents, and by it registries list them as referrers of an
// image (the referrers API of OCI distribution 1.1).
const spdxMediaType = "application/spdx+json"

// The names of SPDX 2.3, as far as we use it.
//
//nolint:tagliatelle // the standard's
type (
	spdxDocument struct {
		Version       string             `json:"spdxVersion"`
		License       string             `json:"dataLicense"`
		ID            string             `json:"SPDXID"`
		Name          string             `json:"name"`
		Namespace     string             `json:"documentNamespace"`
		Creation      spdxCreation       `json:"creationInfo"`
		Packages      []spdxPackage      `json:"packages"`
		Relationships []spdxRelationship `json:"relationships"`
	}
	spdxCreation struct {
		Created  string   `json:"created"`
		Creators []string `json:"creators"`
	}
	spdxPackage struct {
		ID               string         `json:"SPDXID"`
		Name             string         `json:"name"`
		Version          string         `json:"versionInfo,omitempty"`
		Download         string         `json:"downloadLocation"`
		FilesAnalyzed    bool           `json:"filesAnalyzed"`
		License          string         `json:"licenseDeclared"`
		LicenseConcluded string         `json:"licenseConcluded"`
		Copyright        string         `json:"copyrightText"`
		Purpose          string         `json:"primaryPackagePurpose,omitempty"`
		SourceInfo       string         `json:"sourceInfo,omitempty"`
		Checksums        []spdxChecksum `json:"checksums,omitempty"`
		References       []spdxExternal `json:"externalRefs,omitempty"`
	}
	spdxChecksum struct {
		Algorithm string `json:"algorithm"`
		Value     string `json:"checksumValue"`
	}
	spdxExternal struct {
		Category string `json:"referenceCategory"`
		Type     string `json:"referenceType"`
		Locator  string `json:"referenceLocator"`
	}
	spdxRelationship struct {
		From string `json:"spdxElementId"`
		Type string `json:"relationshipType"`
		To   string `json:"relatedSpdxElement"`
	}
)

const (
	// spdxNone says that something is not known, which the standard wants said. spdxRoot is the
	// document itself, to which all that it describes is related.
	spdxNone     = "NOASSERTION"
	spdxRoot     = "SPDXRef-DOCUMENT"
	spdxContains = "CONTAINS"
)

// newSBOM returns the list of an image's parts: the binary with its modules and the toolchain, the
// packages of the base, or the certificates where there is no base.
//
// The result is JSON with a line break at its end. Its time is the commit's and its namespace has
// the image's digest, so the same image has the same document.
func newSBOM(s *source, p program, platform v1.Platform, img v1.Image, binary []byte, info *buildinfo.BuildInfo, on *baseImage) ([]byte, error) {
	digest, err := img.Digest()
	if err != nil {
		return nil, err
	}
	title := "pfl-forge/" + p.name
	d := &spdxDocument{
		Version: "SPDX-2.3", License: "CC0-1.0", ID: spdxRoot,
		Name:      title + ":" + s.version + " " + platform.String(),
		Namespace: sourceURL + "/sbom/" + p.name + "/" + digest.Hex,
		Creation:  spdxCreation{Created: s.time.Format(time.RFC3339), Creators: []string{"Tool: pfl-forge-images", "Organization: pfl-forge"}},
	}
	image := d.add(spdxRoot, "DESCRIBES", spdxPackage{
		Name: title, Version: s.version, License: "Apache-2.0", Purpose: "CONTAINER",
		Checksums: []spdxChecksum{{Algorithm: "SHA256", Value: digest.Hex}},
	}, "pkg:oci/"+p.name+"@"+url.QueryEscape(digest.String())+"?arch="+platform.Architecture)
	if on != nil {
		for _, deb := range on.packages {
			d.add(image, spdxContains, spdxPackage{Name: deb.name, Version: deb.version}, deb.purl())
		}
	} else if err := d.addRoots(image, s); err != nil {
		return nil, err
	}
	program := d.add(image, spdxContains, spdxPackage{
		Name: p.file, Version: info.Main.Version, License: "Apache-2.0", Purpose: "APPLICATION",
		Download: s.location(), SourceInfo: info.Main.Path,
		Checksums: []spdxChecksum{{Algorithm: "SHA256", Value: hexSHA256(binary)}},
	}, goPURL(info.Main.Path, info.Main.Version))
	goVersion := strings.TrimPrefix(info.GoVersion, "go")
	d.add(program, "DEPENDS_ON", spdxPackage{Name: "stdlib", Version: goVersion, License: "BSD-3-Clause"}, goPURL("stdlib", goVersion))
	for _, m := range info.Deps {
		d.addModule(program, "DEPENDS_ON", m, s)
	}
	data, err := json.MarshalIndent(d, "", "  ")
	return append(data, '\n'), err
}

// addRoots adds the module that the file of certificates is made of.
// The certificates come from a module of this program itself, not of the one in the image.
func (d *spdxDocument) addRoots(image string, s *source) error {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return errors.New("this program does not know its own modules")
	}
	for _, m := range info.Deps {
		if m.Path == "golang.org/x/crypto/x509roots/fallback" {
			d.addModule(image, spdxContains, m, s)
			return nil
		}
	}
	return errors.New("this program does not know the version of the certificates")
}

// addModule adds a module of a binary. One that is replaced by a folder is part of the
// commit, and has its version.
func (d *spdxDocument) addModule(from, how string, m *debug.Module, s *source) {
	p := spdxPackage{Name: m.Path, Version: m.Version}
	switch r := m.Replace; {
	case r == nil && m.Sum != "":
		p.SourceInfo = "go.sum " + m.Sum
	case r != nil && r.Sum != "":
		p.Name, p.Version, p.SourceInfo = r.Path, r.Version, "go.sum "+r.Sum
	case r != nil:
		p.Version, p.Download = s.version, s.location()
	}
	d.add(from, how, p, goPURL(p.Name, p.Version))
}

// goPURL returns the package URL of a Go module.
func goPURL(module, version string) string {
	return "pkg:golang/" + module + "@" + url.QueryEscape(version)
}

// add adds a package with a relationship to it, and returns its id. The id
// follows from the purl, so that the same part has the same id in each
// document. Licenses that are not known are NOASSERTION.
func (d *spdxDocument) add(from, how string, p spdxPackage, purl string) string {
	sum := sha1.Sum([]byte(purl)) //nolint:gosec // as above
	p.ID = fmt.Sprintf("SPDXRef-Package-%x", sum[:8])
	if p.Download == "" {
		p.Download = spdxNone
	}
	if p.License == "" {
		p.License = spdxNone
	}
	p.LicenseConcluded, p.Copyright = spdxNone, spdxNone
	p.References = []spdxExternal{{Category: "PACKAGE-MANAGER", Type: "purl", Locator: purl}}
	d.Packages = append(d.Packages, p)
	d.Relationships = append(d.Relationships, spdxRelationship{From: from, Type: how, To: p.ID})
	return p.ID
}

// referrer returns an artifact that holds an image's SBOM and names the image as its
// subject, so that a registry lists it among the image's referrers.
// Its only layer is the document, uncompressed.
func referrer(img v1.Image, doc []byte) (v1.Image, error) {
	digest, err := img.Digest()
	if err != nil {
		return nil, err
	}
	size, err := img.Size()
	if err != nil {
		return nil, err
	}
	artifact, err := mutate.AppendLayers(mutate.MediaType(empty.Image, types.OCIManifestSchema1), static.NewLayer(doc, spdxMediaType))
	if err != nil {
		return nil, err
	}
	artifact = mutate.ConfigMediaType(artifact, spdxMediaType)
	return mutate.Subject(artifact, v1.Descriptor{MediaType: types.OCIManifestSchema1, Size: size, Digest: digest}).(v1.Image), nil
}
