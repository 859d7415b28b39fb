//go:build manifests || cluster

package k8s

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"
)

// TestGuideRuns runs the guide's shell blocks as they stand, with the real pfl-forge
// and a kubectl that notes what it is asked: install makes the Secrets of the guide's
// table, and the rotation renews the key of one service, from what install made.
func TestGuideRuns(t *testing.T) {
	h := newHandbook(t)
	program := filepath.Join(t.TempDir(), "pfl-forge")
	link := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./cmd/pfl-forge")
	link.Dir = "../.."
	if out, err := link.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	sh := newTerminal(t, kubectl, program)
	for _, b := range h.blocks("sh") {
		if out, err := exec.CommandContext(t.Context(), "sh", "-n", "-c", b).CombinedOutput(); err != nil {
			t.Errorf("%v: %s\n%s", err, out, b)
		}
	}
	made := sh.run(h.block("kubectl create namespace"))
	for _, name := range regexp.MustCompile("(?m)^ *\\| (`forge-nats-[^|]+) \\| ").FindAllStringSubmatch(h.text, -1) {
		for _, one := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(name[1], -1) {
			if made[one[1]] == nil && one[1] != "forge-nats-tls" { // cert-manager's
				t.Errorf("install makes no Secret %s, but %q", one[1], sh.names(made))
			}
		}
	}
	for _, want := range []string{
		"create namespace pfl-forge", "secret generic forge-git --from-file=netrc",
		"secret generic forge-models --from-file=ANTHROPIC_API_KEY=anthropic-key",
	} {
		if !strings.Contains(sh.asked(), want) {
			t.Errorf("kubectl is not asked to %q:\n%s", want, sh.asked())
		}
	}
	// What is on a command line is in the history of the shell, and in the list of processes.
	if strings.Contains(h.text, "--from-literal") {
		t.Error("a secret is on a command line")
	}
	rotate := h.block("--role implementer --from -")
	m := regexp.MustCompile(`get secrets -l (\S+) -o json`).FindStringSubmatch(rotate)
	if m == nil {
		t.Fatalf("the rotation reads no Secrets:\n%s", rotate)
	}
	selector, err := labels.Parse(m[1])
	if err != nil {
		t.Fatal(err)
	}
	sh.serve(made, selector)
	renewed := sh.run(rotate)
	for _, name := range []string{"forge-nats-implementer", "forge-nats-server"} {
		if renewed[name] == nil || fmt.Sprint(renewed[name].Data) == fmt.Sprint(made[name].Data) {
			t.Errorf("the rotation does not renew %s, but %q", name, sh.names(renewed))
		}
	}
	if other := renewed["forge-nats-runner"]; other != nil && string(other.Data["nkey"]) != string(made["forge-nats-runner"].Data["nkey"]) {
		t.Error("the rotation changes the key of runners")
	}
	if !strings.Contains(sh.asked(), "rollout restart statefulset/nats") {
		t.Errorf("NATS is not restarted:\n%s", sh.asked())
	}
	sh.do(sh.dir, h.block("forge-models --from-file=ANTHROPIC_API_KEY=anthropic-key --dry-run=client"))
}

// terminal runs what a person would type.
type terminal struct {
	t   *testing.T
	dir string // HOME, with the programs in bin
}

// kubectl notes what it is asked and given, and answers with the Secrets that there are.
const kubectl = `#!/bin/sh
echo "$*" >> "$HOME/asked"
case "$*" in
*"-f -"*) cat >> "$HOME/given"; echo --- >> "$HOME/given" ;;
*"get secrets"*) cat "$HOME/secrets.json" ;;
esac
`

// newTerminal returns one whose kubectl is a script, and whose pfl-forge is a program.
func newTerminal(t *testing.T, kubectl, program string) *terminal {
	t.Helper()
	s := &terminal{t, t.TempDir()}
	if err := os.Mkdir(filepath.Join(s.dir, "bin"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"bin/kubectl": kubectl, "netrc": "machine git.example.com login x password y\n", "anthropic-key": "key\n",
	} {
		if err := os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(program, filepath.Join(s.dir, "bin", "pfl-forge")); err != nil {
		t.Fatal(err)
	}
	return s
}

// run runs a block and returns the Secrets that kubectl was given in it, by name.
func (s *terminal) run(block string) map[string]*core.Secret {
	s.t.Helper()
	given := filepath.Join(s.dir, "given")
	_ = os.Remove(given)
	s.do(s.dir, block)
	text, err := os.ReadFile(given)
	if err != nil {
		s.t.Fatal(err)
	}
	all := map[string]*core.Secret{}
	for one := range strings.SplitSeq(string(text), "---\n") {
		secret := new(core.Secret)
		if err := yaml.UnmarshalStrict([]byte(one), secret); err != nil {
			s.t.Fatal(err)
		}
		if secret.Name == "" {
			continue
		}
		if secret.Kind != "Secret" || secret.Namespace != "pfl-forge" {
			s.t.Errorf("%s %s of namespace %q", secret.Kind, secret.Name, secret.Namespace)
		}
		for key, value := range secret.StringData { // as the API server does
			if secret.Data == nil {
				secret.Data = map[string][]byte{}
			}
			secret.Data[key] = []byte(value)
		}
		secret.StringData = nil
		all[secret.Name] = secret
	}
	return all
}

// do runs a block in a folder, and returns what is printed.
func (s *terminal) do(dir, block string) string {
	s.t.Helper()
	cmd := exec.CommandContext(s.t.Context(), "sh", "-e", "-c", block)
	cmd.Dir, cmd.Env = dir, []string{"HOME=" + s.dir, "PATH=" + filepath.Join(s.dir, "bin") + ":/usr/bin:/bin"}
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.t.Fatalf("%v\n%s\n%s", err, out, block)
	}
	return string(out)
}

// serve has kubectl answer with those Secrets that have the labels, of which there are some.
func (s *terminal) serve(all map[string]*core.Secret, selector labels.Selector) {
	s.t.Helper()
	list := core.SecretList{}
	list.Kind, list.APIVersion = "List", "v1"
	for _, one := range all {
		if selector.Matches(labels.Set(one.Labels)) {
			list.Items = append(list.Items, *one)
		}
	}
	if len(list.Items) == 0 {
		s.t.Fatalf("no Secret has the labels %s", selector)
	}
	text, err := json.Marshal(list)
	if err == nil {
		err = os.WriteFile(filepath.Join(s.dir, "secrets.json"), text, 0o600)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// asked returns the command lines of kubectl so far.
func (s *terminal) asked() string {
	s.t.Helper()
	text, err := os.ReadFile(filepath.Join(s.dir, "asked"))
	if err != nil {
		s.t.Fatal(err)
	}
	return string(text)
}

// names returns the names of Secrets, sorted.
func (*terminal) names(all map[string]*core.Secret) []string {
	var list []string
	for name := range all {
		list = append(list, name)
	}
	slices.Sort(list)
	return list
}
