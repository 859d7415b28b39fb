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
	"strconv"
	"strings"
	"testing"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"
)

// handbook is the guide with what its commands are about.
type handbook struct {
	t    *testing.T
	text string
	// installation is what the guide's own kustomization renders, and grouped
	// one with a group of replicas.
	installation, grouped *manifests
}

// newHandbook reads the guide, and renders the kustomization that it begins with, as it stands but
// for the place of this repository.
func newHandbook(t *testing.T) *handbook {
	t.Helper()
	text, err := os.ReadFile(guide)
	if err != nil {
		t.Fatal(err)
	}
	h := &handbook{t: t, text: string(text)}
	_, whole, _ := strings.Cut(h.block("# kustomization.yaml"), "namespace: pfl-forge\n")
	h.installation = h.render(t, whole)
	h.grouped = h.render(t, h.block("/overlays/production, large]"))
	return h
}

// fenced matches the fenced blocks of a document, with their indentation and language.
var fenced = regexp.MustCompile("(?ms)^( *)```([a-z]*)\n(.*?)^ *```$")

// blocks returns the fenced blocks in a language, without their indentation.
func (h *handbook) blocks(language string) []string {
	var list []string
	for _, m := range fenced.FindAllStringSubmatch(h.text, -1) {
		if m[2] == language {
			list = append(list, regexp.MustCompile("(?m)^"+m[1]).ReplaceAllString(m[3], ""))
		}
	}
	return list
}

// block returns the one block that has a text.
func (h *handbook) block(with string) string {
	h.t.Helper()
	var found []string
	for _, b := range append(h.blocks("sh"), h.blocks("yaml")...) {
		if strings.Contains(b, with) {
			found = append(found, b)
		}
	}
	if len(found) != 1 {
		h.t.Fatalf("%d blocks of the guide have %q", len(found), with)
	}
	return found[0]
}

// commands returns every command line of kubectl in the guide: those in blocks, and those in the
// text. Flags alone, such as `kubectl`, are none.
func (h *handbook) commands() []string {
	var list []string
	for _, b := range h.blocks("sh") {
		for line := range strings.Lines(b) {
			for part := range strings.SplitSeq(line, "|") {
				list = append(list, strings.TrimSpace(part))
			}
		}
	}
	text := fenced.ReplaceAllString(h.text, "")
	for _, m := range regexp.MustCompile("`(kubectl [^`]+)`").FindAllStringSubmatch(text, -1) {
		list = append(list, m[1])
	}
	return slices.DeleteFunc(list, func(s string) bool { return !strings.HasPrefix(s, "kubectl ") })
}

// TestGuideNamesWhatThereIs: every folder that the guide applies renders, its
// kustomization names all images, and every object, namespace and selector of a
// command is one that an installation has.
func TestGuideNamesWhatThereIs(t *testing.T) {
	h := newHandbook(t)
	if found := imagesAreVersions(h.installation); len(found) > 0 {
		t.Errorf("the guide's kustomization leaves images without a version: %q", found)
	}
	verbs := map[string]int{}
	for _, line := range h.commands() {
		words := strings.Fields(line)
		args, verb, plain := words[1:], "", []string(nil)
		for i := 0; i < len(args); i++ {
			switch word := args[i]; {
			case slices.Contains([]string{"-n", "-k", "-l", "-o", "-f"}, word):
				if i++; i == len(args) {
					t.Errorf("%q: %s has no value", line, word)
					break
				}
				h.flag(line, word, args[i])
			case strings.HasPrefix(word, "-"):
			case verb == "":
				verb = word
				verbs[verb]++
			default:
				plain = append(plain, word) // no flag, and the value of none
			}
		}
		switch verb {
		case "rollout":
			h.rollout(line, args)
		case "port-forward":
			h.forward(line, args)
		case "delete":
			h.deleted(line, plain)
		case "patch", "wait", "logs":
			h.named(line, plain)
		}
	}
	// A verb that is new here needs a check of what it names, or a reason to need none.
	for verb := range verbs {
		if !slices.Contains(strings.Fields("apply create get delete diff drain uncordon exec port-forward rollout patch wait logs"), verb) {
			t.Errorf("kubectl %s is not looked at", verb)
		}
	}
	if verbs["apply"] < 3 || verbs["rollout"] < 3 || verbs["create"] < 4 {
		t.Errorf("few commands were found: %v", verbs)
	}
}

// TestRestoreBeginsWithAllButServices: before a restore the guide applies NATS
// with all that it refers to, since settings have another name after each
// change, and nothing that works on streams which are half there.
func TestRestoreBeginsWithAllButServices(t *testing.T) {
	found := regexp.MustCompile(`apply --server-side -k \. -l (\S+)\n`).FindStringSubmatch(newHandbook(t).block("create job restore"))
	if found == nil {
		t.Fatal("the guide applies nothing before a restore")
	}
	selector, err := labels.Parse(found[1])
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range build(t, everything).objects {
		works := slices.Contains([]string{"Deployment", "StatefulSet"}, o.GetKind()) && o.GetName() != "nats"
		if o.GetKind() != "Service" && selector.Matches(labels.Set(o.GetLabels())) == works {
			t.Errorf("%s %s: applied before the restore is %t", o.GetKind(), o.GetName(), !works)
		}
	}
}

// flag checks the value of a flag.
func (h *handbook) flag(line, flag, value string) {
	h.t.Helper()
	switch flag {
	case "-n":
		if !slices.ContainsFunc(of[*core.Namespace](h.installation), func(n *core.Namespace) bool { return n.Name == value }) {
			h.t.Errorf("%q: an installation has no namespace %s", line, value)
		}
	case "-k":
		if _, err := os.Stat(filepath.Join("../..", value, "kustomization.yaml")); value != "." && err != nil {
			h.t.Errorf("%q: %v", line, err)
		}
	case "-l":
		selector, err := labels.Parse(value)
		if err != nil {
			h.t.Errorf("%q: %v", line, err)
			return
		}
		// Secrets are made by auth init: TestGuideRuns looks for theirs.
		if !strings.Contains(line, "secrets") && !h.selects(selector) {
			h.t.Errorf("%q: nothing has the labels %s", line, value)
		}
	}
}

// selects reports whether any object of the installation has the labels, or of
// one with all components.
func (h *handbook) selects(s labels.Selector) bool {
	h.t.Helper()
	has := func(m *manifests) bool {
		return slices.ContainsFunc(m.objects, func(o *unstructured.Unstructured) bool { return s.Matches(labels.Set(o.GetLabels())) })
	}
	return has(h.installation) || has(build(h.t, everything))
}

// rollout checks the objects of kubectl rollout: kind/name, or a kind with names behind it.
func (h *handbook) rollout(line string, args []string) {
	h.t.Helper()
	at := slices.IndexFunc(args, func(s string) bool { return s == "restart" || s == "status" })
	if at < 0 {
		h.t.Errorf("%q: neither restart nor status", line)
		return
	}
	kind := ""
	for _, word := range args[at+1:] {
		name := word
		if before, after, ok := strings.Cut(word, "/"); ok {
			kind, name = before, after
		} else if kind == "" {
			kind = word
			continue
		}
		if !h.exists(kind, name) {
			h.t.Errorf("%q: an installation has no %s %s", line, kind, name)
		}
	}
}

// deleted checks the objects of kubectl delete: kinds, and names behind one of them.
func (h *handbook) deleted(line string, plain []string) {
	h.t.Helper()
	if len(plain) == 0 {
		return // a folder, which flag has seen
	}
	for kind := range strings.SplitSeq(plain[0], ",") {
		kind = strings.TrimSuffix(kind, "s")
		if kind == "job" || kind == "persistentvolumeclaim" {
			continue // of a CronJob, and of StatefulSets: nothing has their manifests
		}
		if !slices.ContainsFunc(h.installation.objects, func(o *unstructured.Unstructured) bool { return strings.EqualFold(o.GetKind(), kind) }) {
			h.t.Errorf("%q: an installation has no %s", line, kind)
		}
		for _, name := range plain[1:] {
			if !h.exists(kind, name) {
				h.t.Errorf("%q: an installation has no %s %s", line, kind, name)
			}
		}
	}
}

// named checks kind/name of what the components of backups bring. A Job is made by the
// commands themselves, and an object of a file, or all that a selector finds, has no name.
func (h *handbook) named(line string, plain []string) {
	h.t.Helper()
	for _, word := range plain {
		kind, name, found := strings.Cut(word, "/")
		if !found || kind == "job" || strings.ContainsAny(kind, "'\"[{") {
			continue
		}
		if name != "backup" || kind != "cronjob" {
			h.t.Errorf("%q: no component has %s", line, word)
		}
	}
}

// forward checks the Service and the port of kubectl port-forward service/NAME PORT.
func (h *handbook) forward(line string, args []string) {
	h.t.Helper()
	for _, s := range of[*core.Service](h.installation) {
		for _, p := range s.Spec.Ports {
			at := slices.Index(args, "service/"+s.Name)
			if at >= 0 && at+1 < len(args) && args[at+1] == strconv.Itoa(int(p.Port)) {
				return
			}
		}
	}
	h.t.Errorf("%q: an installation has no such Service and port", line)
}

// exists reports whether the installation has an object, or one with a group.
func (h *handbook) exists(kind, name string) bool {
	for _, o := range slices.Concat(h.installation.objects, h.grouped.objects) {
		if strings.EqualFold(o.GetKind(), kind) && o.GetName() == name {
			return true
		}
	}
	return false
}

// TestSecretsAreRead: every Secret of the guide's table is one that some pod reads,
// so that an operator makes none for nothing. That pods read no others is a rule.
func TestSecretsAreRead(t *testing.T) {
	documented, err := documentedSecrets()
	if err != nil {
		t.Fatal(err)
	}
	if len(documented) < 10 {
		t.Errorf("the table has %d Secrets", len(documented))
	}
	for _, w := range ownPods(build(t, everything)) {
		_, secrets := references(&w.pod.Spec)
		for _, name := range secrets {
			delete(documented, name)
		}
	}
	for name := range documented {
		t.Errorf("no pod reads the Secret %s", name)
	}
}

// TestGuideRuns runs the guide's shell blocks as they stand, with the real pfl-forge
// and a kubectl that notes what it is asked: install makes the Secrets of the guide's
// table, and the rotation renews the key of one service, from what install made.
func TestGuideRuns(t *testing.T) {
	h := newHandbook(t)
	sh := newTerminal(t, kubectl)
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

// newTerminal returns one whose kubectl is a script.
func newTerminal(t *testing.T, kubectl string) *terminal {
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
	build := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(s.dir, "bin", "pfl-forge"), "./cmd/pfl-forge")
	build.Dir = "../.."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
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
