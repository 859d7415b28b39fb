//go:build manifests || cluster

package k8s

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
)

// index is the guide with what its commands are about.
type index struct {
	*handbook

	// installation is what the guide's own kustomization renders, and grouped
	// one with a group of replicas.
	installation, grouped *manifests
}

// newIndex reads the guide, and renders the kustomization that it begins with,
// as it stands but for the place of this repository.
func newIndex(t *testing.T) *index {
	t.Helper()
	h := newHandbook(t)
	_, whole, _ := strings.Cut(h.block("# kustomization.yaml"), "namespace: pfl-forge\n")
	return &index{h, h.render(t, whole), h.render(t, h.block("/overlays/production, large]"))}
}

// TestGuideNamesWhatThereIs: every folder that the guide applies renders, its
// kustomization names all images, and every object, namespace and selector of a
// command is one that an installation has.
func TestGuideNamesWhatThereIs(t *testing.T) {
	h := newIndex(t)
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
func (h *index) flag(line, flag, value string) {
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
func (h *index) selects(s labels.Selector) bool {
	h.t.Helper()
	has := func(m *manifests) bool {
		return slices.ContainsFunc(m.objects, func(o *unstructured.Unstructured) bool { return s.Matches(labels.Set(o.GetLabels())) })
	}
	return has(h.installation) || has(build(h.t, everything))
}

// rollout checks the objects of kubectl rollout: kind/name, or a kind with names behind it.
func (h *index) rollout(line string, args []string) {
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
func (h *index) deleted(line string, plain []string) {
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
func (h *index) named(line string, plain []string) {
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
func (h *index) forward(line string, args []string) {
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
func (h *index) exists(kind, name string) bool {
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
