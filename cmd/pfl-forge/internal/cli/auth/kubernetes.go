package auth

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"github.com/pfl-forge/pfl-forge/internal/pattern"
	"github.com/pfl-forge/pfl-forge/internal/strictyaml"
)

// namespaces matches the names of namespaces.
var namespaces = pattern.New(namespaceRule)

const (
	// secretPrefix begins the names of our Secrets.
	secretPrefix = "forge-nats-" //nolint:gosec // the beginning of a name
	// consoleObject is the Secret of consoleSecret.
	consoleObject = "forge-gateway-console"
	// partOf is the label of everything in an installation.
	partOf = "app.kubernetes.io/part-of"
	// secretBytes bounds the text in which the Secrets that exist are read.
	secretBytes = 16 << 20
)

// cluster keeps an installation's secrets as Secrets of Kubernetes.
//
// It never talks to a cluster: Secrets are read from and written to text, and kubectl moves them, with the rights of
// the person who calls it.
type cluster struct {
	namespace string
	folder    string // to write to; empty for out
	from      string // file with those that exist; - for in
	in        io.Reader
	out       io.Writer
}

// secretObject is a Secret.
// It has the fields that we write. Those that a cluster adds are dropped when a list of kubectl is read.
type secretObject struct {
	APIVersion string            `json:"apiVersion" yaml:"apiVersion"` //nolint:tagliatelle // as Kubernetes has it
	Kind       string            `json:"kind"       yaml:"kind"`
	Metadata   secretMetadata    `json:"metadata"   yaml:"metadata"`
	Type       string            `json:"type"       yaml:"type"`
	Data       map[string]string `json:"data"       yaml:"data"`
}

// secretMetadata names a Secret.
type secretMetadata struct {
	Name      string            `json:"name"      yaml:"name"`
	Namespace string            `json:"namespace" yaml:"namespace"`
	Labels    map[string]string `json:"labels"    yaml:"labels"`
}

// read implements store.
// Without --from and --out there are none, so that a new installation is made.
func (c *cluster) read() (secrets, error) {
	switch {
	case c.from == "-":
		return c.parseList(c.in)
	case c.from != "":
		f, err := os.Open(c.from)
		if err != nil {
			return nil, fmt.Errorf("--from: %w", err)
		}
		defer func() { _ = f.Close() }()
		return c.parseList(f)
	case c.folder != "":
		return c.readFolder()
	}
	return secrets{}, nil
}

// parseList reads Secrets as kubectl get -o json prints them.
// A list without the Secret of the server is an error: it is probably of another namespace, and taking it for a new
// installation would replace all keys.
func (c *cluster) parseList(r io.Reader) (secrets, error) {
	text, err := io.ReadAll(io.LimitReader(r, secretBytes))
	if err != nil {
		return nil, fmt.Errorf("--from: %w", err)
	}
	var list struct {
		Kind  string         `json:"kind"`
		Items []secretObject `json:"items"`
	}
	if err := json.Unmarshal(text, &list); err != nil || list.Kind != "List" && list.Kind != "SecretList" {
		return nil, errors.New("--from: this is no list of Secrets, as kubectl get secrets -o json prints it")
	}
	found := secrets{}
	for i := range list.Items {
		if err := c.take(found, &list.Items[i]); err != nil {
			return nil, fmt.Errorf("--from: %w", err)
		}
	}
	if found[serverSecret] == nil {
		return nil, fmt.Errorf("--from: there is no Secret %s%s of namespace %s in it", secretPrefix, serverSecret, c.namespace)
	}
	return found, nil
}

// readFolder reads Secrets that were written to the folder.
// Files of other names are left alone. Those of ours must be exact: an unknown field is an error.
func (c *cluster) readFolder() (secrets, error) {
	names, err := filepath.Glob(filepath.Join(c.folder, "forge-*.yaml"))
	if err != nil {
		return nil, fmt.Errorf("--out: %w", err)
	}
	found := secrets{}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("--out: %w", err)
		}
		var s secretObject
		if _, err := strictyaml.Decode(text, &s, strictyaml.Options{MaxBytes: secretBytes}); err != nil {
			return nil, fmt.Errorf("--out: %s: %w", name, err)
		}
		if err := c.take(found, &s); err != nil {
			return nil, fmt.Errorf("--out: %s: %w", name, err)
		}
	}
	return found, nil
}

// take adds a Secret to those that exist. Others than ours are left out.
// A Secret of another namespace is left out, too: one list may have several installations.
func (c *cluster) take(found secrets, s *secretObject) error {
	name, ours := strings.CutPrefix(s.Metadata.Name, secretPrefix)
	if s.Metadata.Name == consoleObject {
		name, ours = consoleSecret, true
	}
	if !ours || s.Kind != "Secret" || s.Metadata.Namespace != c.namespace {
		return nil
	}
	entries := map[string][]byte{}
	for key, value := range s.Data {
		content, err := base64.StdEncoding.DecodeString(value)
		if err != nil {
			return fmt.Errorf("entry %s of Secret %s is not in base64", key, s.Metadata.Name)
		}
		entries[key] = content
	}
	found[name] = entries
	return nil
}

// objectOf returns the name of a Secret.
// The console's has another prefix, because it is of the gateway and no part of NATS.
func objectOf(name string) string {
	if name == consoleSecret {
		return consoleObject
	}
	return secretPrefix + name
}

// write implements store.
// Without a folder they go to out as one stream of YAML documents, which kubectl applies in their order. The result has
// the names of Secrets, or the paths of files. All entries of a Secret are written, also those that have not changed,
// because kubectl replaces it as a whole.
func (c *cluster) write(changed, _ secrets) ([]string, error) {
	var written []string
	for i, name := range inOrder(maps.Keys(changed), signersSecret, serverSecret) {
		s := secretObject{
			APIVersion: "v1", Kind: "Secret", Type: "Opaque", Data: map[string]string{},
			Metadata: secretMetadata{Name: objectOf(name), Namespace: c.namespace, Labels: map[string]string{partOf: "pfl-forge"}},
		}
		for key, content := range changed[name] {
			s.Data[key] = base64.StdEncoding.EncodeToString(content)
		}
		text, err := strictyaml.Encode(s)
		if err != nil {
			return written, err
		}
		if c.folder == "" {
			if i > 0 {
				text = append([]byte("---\n"), text...)
			}
			if _, err := c.out.Write(text); err != nil {
				return written, err
			}
			written = append(written, s.Metadata.Name)
			continue
		}
		if err := os.MkdirAll(c.folder, 0o700); err != nil {
			return written, fmt.Errorf("--out: %w", err)
		}
		path := filepath.Join(c.folder, s.Metadata.Name+".yaml")
		if err := replace(path, text); err != nil {
			return written, fmt.Errorf("--out: %w", err)
		}
		written = append(written, path)
	}
	return written, nil
}
