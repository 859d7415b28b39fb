package main

import (
	"archive/tar"
	"bytes"
	"encoding/pem"
	"path"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

const (
	home  = "home/forge" // HOME: where git, ssh and notifications look for files of a person
	state = "state"      // FORGE_STATE_DIR
	temp  = "tmp"

	passwdFile = "etc/passwd"
	groupFile  = "etc/group"
	rootsFile  = "etc/ssl/certs/ca-certificates.crt"
)

// entry is a file of a layer, or a folder if its name ends with a slash.
// mode has the permissions, and owner the number of both user and group; 0 is root.
type entry struct {
	name  string // relative to the root
	mode  int64
	owner int
	data  []byte
}

// newLayer returns a layer with these entries and the folders above them, sorted by name, so that
// a folder comes before its files. At is the time of all of them: the same entries give the same
// layer, byte for byte.
func newLayer(entries []entry, at time.Time) (v1.Layer, error) {
	all := map[string]entry{}
	for _, e := range entries {
		for dir := path.Dir(strings.TrimSuffix(e.name, "/")); dir != "."; dir = path.Dir(dir) {
			if _, ok := all[dir+"/"]; !ok {
				all[dir+"/"] = entry{name: dir + "/", mode: 0o755}
			}
		}
		all[e.name] = e
	}
	var sorted []string
	for name := range all {
		sorted = append(sorted, name)
	}
	slices.Sort(sorted)
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	for _, name := range sorted {
		e := all[name]
		h := &tar.Header{
			Name: e.name, Mode: e.mode, Uid: e.owner, Gid: e.owner, Size: int64(len(e.data)),
			ModTime: at, Typeflag: tar.TypeReg, Format: tar.FormatUSTAR,
		}
		if strings.HasSuffix(name, "/") {
			h.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := w.Write(e.data); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(opener(buf.Bytes()), tarball.WithMediaType(types.OCILayer), tarball.WithCompressedCaching)
}

// entriesOf returns the files of an image around a binary. On a base they are
// added to its files, otherwise they are all that there is. The program can write
// to its home, the state and tmp alone. Without a base a file of certificate
// authorities is added, without which no TLS connection could be verified.
func entriesOf(p program, binary []byte, on *baseImage) []entry {
	entries := []entry{
		{name: "usr/bin/" + p.file, mode: 0o755, data: binary},
		{name: home + "/", mode: 0o755, owner: user},
		{name: state + "/", mode: 0o700, owner: user},
		{name: temp + "/", mode: 0o1777},
	}
	if on != nil {
		return append(entries,
			entry{name: passwdFile, mode: 0o644, data: withUser(on.passwd, passwdLine)},
			entry{name: groupFile, mode: 0o644, data: withUser(on.group, groupLine)})
	}
	return append(entries,
		entry{name: passwdFile, mode: 0o644, data: []byte("root:x:0:0:root:/root:/sbin/nologin\n" + passwdLine)},
		entry{name: groupFile, mode: 0o644, data: []byte("root:x:0:\n" + groupLine)},
		entry{name: rootsFile, mode: 0o644, data: rootCertificates()})
}

// ssh refuses to work for a user that passwd does not know.
const (
	passwdLine = "forge:x:65532:65532:pfl-forge:/" + home + ":/bin/sh\n"
	groupLine  = "forge:x:65532:\n"
)

// withUser returns a base's passwd or group file with our line, unless it has the id.
// The file that was given is not altered.
func withUser(file []byte, line string) []byte {
	for known := range strings.Lines(string(file)) {
		if fields := strings.Split(known, ":"); len(fields) > 2 && fields[2] == "65532" {
			return file
		}
	}
	if len(file) > 0 && file[len(file)-1] != '\n' {
		file = append(slices.Clone(file), '\n')
	}
	return append(slices.Clone(file), line...)
}

// rootCertificates returns the certificate authorities of Mozilla as a module of the Go
// project has them, whose version go.mod pins. Those that Mozilla trusts only in part
// are left out: a file of certificates cannot say so.
// They are PEM, in the order of the module.
func rootCertificates() []byte {
	var buf bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			_ = pem.Encode(&buf, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate})
		}
	}
	return buf.Bytes()
}
