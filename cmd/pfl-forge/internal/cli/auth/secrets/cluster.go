package secrets

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
var namespaces = pattern.New(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

// IsNamespace reports whether a name can be one of a namespace.
func IsNamespace(name string) bool { return namespaces.MatchString(name) }

const (
	// secretPrefix begins the names of our Secrets.
	secretPrefix = "forge-nats-" //nolint:gosec // the beginning of a name
	// consoleObject is the Secret of Console.
	consoleObject = "forge-gateway-console"
	// secretBytes bounds the text in which the Secrets that exist are read.
	secretBytes = 16 << 20
)

// Cluster keeps an installation's secrets as Secrets of Kubernetes.
//
// It never talks to a cluster: Secrets are read from and written to text, and
// kubectl moves them, with the rights of the person who calls it.
type Cluster struct {
	Namespace string
	Folder    string // to write to; empty for Out
	From      string // file with those that exist; - for In
	In        io.Reader
	Out       io.Writer
}

// PartOf is the label of everything in an installation.
const PartOf = "app.kubernetes.io/part-of"

// Object is a Secret. It has the fields that we write. Those that a cluster
// adds are dropped when a list of kubectl is read.
type Object struct {
	APIVersion string            `json:"apiVersion" yaml:"apiVersion"` //nolint:tagliatelle // as Kubernetes has it
	Kind       string            `json:"kind"       yaml:"kind"`
	Metadata   Metadata          `json:"metadata"   yaml:"metadata"`
	Type       string            `json:"type"       yaml:"type"`
	Data       map[string]string `json:"data"       yaml:"data"`
}

// Metadata names a Secret.
type Metadata struct {
	Name      string            `json:"name"      yaml:"name"`
	Namespace string            `json:"namespace" yaml:"namespace"`
	Labels    map[string]string `json:"labels"    yaml:"labels"`
}

// Read implements Store.
// Without --from and --out there are none, so that a new installation is made.
func (c *Cluster) Read() (Set, error) {
	switch {
	case c.From == "-":
		return c.parseList(c.In)
	case c.From != "":
		f, err := os.Open(c.From)
		if err != nil {
			return nil, fmt.Errorf("--from: %w", err)
		}
		defer func() { _ = f.Close() }()
		return c.parseList(f)
	case c.Folder != "":
		return c.readFolder()
	}
	return Set{}, nil
}

// parseList reads Secrets as kubectl get -o json prints them. A list without
// the Secret of the server is an error: it is probably of another namespace,
// and taking it for a new installation would replace all keys.
func (c *Cluster) parseList(r io.Reader) (Set, error) {
	text, err := io.ReadAll(io.LimitReader(r, secretBytes))
	if err != nil {
		return nil, fmt.Errorf("--from: %w", err)
	}
	var list struct {
		Kind  string   `json:"kind"`
		Items []Object `json:"items"`
	}
	if err := json.Unmarshal(text, &list); err != nil || list.Kind != "List" && list.Kind != "SecretList" {
		return nil, errors.New("--from: this is no list of Secrets, as kubectl get secrets -o json prints it")
	}
	found := Set{}
	for i := range list.Items {
		if err := c.take(found, &list.Items[i]); err != nil {
			return nil, fmt.Errorf("--from: %w", err)
		}
	}
	if found[Server] == nil {
		return nil, fmt.Errorf("--from: there is no Secret %s%s of namespace %s in it", secretPrefix, Server, c.Namespace)
	}
	return found, nil
}

// readFolder reads Secrets that were written to the folder.
// Files of other names are left alone. Those of ours must be exact: an unknown field is an error.
func (c *Cluster) readFolder() (Set, error) {
	names, err := filepath.Glob(filepath.Join(c.Folder, "forge-*.yaml"))
	if err != nil {
		return nil, fmt.Errorf("--out: %w", err)
	}
	found := Set{}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("--out: %w", err)
		}
		var s Object
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
func (c *Cluster) take(found Set, s *Object) error {
	name, ours := strings.CutPrefix(s.Metadata.Name, secretPrefix)
	if s.Metadata.Name == consoleObject {
		name, ours = Console, true
	}
	if !ours || s.Kind != "Secret" || s.Metadata.Namespace != c.Namespace {
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

// ObjectOf returns the name of a Secret.
// The console's has another prefix, because it is of the gateway and no part of NATS.
func ObjectOf(name string) string {
	if name == Console {
		return consoleObject
	}
	return secretPrefix + name
}

// Write implements Store. Without a folder they go to out as one stream of YAML
// documents, which kubectl applies in their order. The result has the names of
// Secrets, or the paths of files. All entries of a Secret are written, also
// those that have not changed, because kubectl replaces it as a whole.
func (c *Cluster) Write(changed, _ Set) ([]string, error) {
	var written []string
	for i, name := range inOrder(maps.Keys(changed), Signers, Server) {
		s := Object{
			APIVersion: "v1", Kind: "Secret", Type: "Opaque", Data: map[string]string{},
			Metadata: Metadata{Name: ObjectOf(name), Namespace: c.Namespace, Labels: map[string]string{PartOf: "pfl-forge"}},
		}
		for key, content := range changed[name] {
			s.Data[key] = base64.StdEncoding.EncodeToString(content)
		}
		text, err := strictyaml.Encode(s)
		if err != nil {
			return written, err
		}
		if c.Folder == "" {
			if i > 0 {
				text = append([]byte("---\n"), text...)
			}
			if _, err := c.Out.Write(text); err != nil {
				return written, err
			}
			written = append(written, s.Metadata.Name)
			continue
		}
		if err := os.MkdirAll(c.Folder, 0o700); err != nil {
			return written, fmt.Errorf("--out: %w", err)
		}
		path := filepath.Join(c.Folder, s.Metadata.Name+".yaml")
		if err := replace(path, text); err != nil {
			return written, fmt.Errorf("--out: %w", err)
		}
		written = append(written, path)
	}
	return written, nil
}
