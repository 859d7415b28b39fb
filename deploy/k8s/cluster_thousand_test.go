//go:build cluster

package k8s

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// TestThousandIntents has another system ask for a thousand changes at once
// (K8S_INTENTS for another number), and follows them until all are merged, once.
// Their commands run in sandboxes in the workers' pods: on two cores each of some
// six pods of their own for a change takes half a second, an hour for a thousand. No
// part of make k8s-test: K8S_RUN=TestThousandIntents K8S_TIMEOUT=2h make k8s-test.
func TestThousandIntents(t *testing.T) {
	count := manyIntents(t, 1000)
	c := findCluster(t)
	version := c.images(t)
	in := newSandboxedInstallation(t, c, "pfl-forge-many", version)
	c.installProfile(t, "pfl-forge/implementer:"+version)
	in.write(t, "overlays/single-node", "", in.sandboxedShop(t)+"replicas: [{name: implementer, count: 2}]\n")
	in.ready(t, "", 7)
	in.memory(t, "at rest")
	began := time.Now()
	in.submit(t, "many", count)
	figure(t, "%d intents are stored after %s", count, time.Since(began).Round(time.Second))
	tenth := max(count/10, 1)
	for part := tenth; part < count; part += tenth {
		in.commits(t, "shop", part)
		t.Logf("%d of %d are merged after %s", part, count, time.Since(began).Round(time.Second))
		if part == 5*tenth {
			in.memory(t, fmt.Sprintf("with %d of %d intents merged", part, count))
		}
	}
	in.commits(t, "shop", count)
	figure(t, "%d intents are merged %s after the first was asked for", count, time.Since(began).Round(time.Second))
	in.merged(t)
	in.measured(t)
	in.memory(t, fmt.Sprintf("after %d intents", count))
}

// manyIntents returns how many intents are asked for at once: K8S_INTENTS, or the usual number.
func manyIntents(t *testing.T, usual int) int {
	t.Helper()
	count, err := strconv.Atoi(cmp.Or(os.Getenv("K8S_INTENTS"), strconv.Itoa(usual)))
	if err != nil {
		t.Fatalf("K8S_INTENTS: %v", err)
	}
	return count
}

// commits waits until so many changes of a project are merged. Most of the wait is
// in the pod: asking it all the time would take from the two cores what is measured.
func (in *installation) commits(t *testing.T, project string, count int) {
	t.Helper()
	script := fmt.Sprintf(`count() { git -C /repos/%s.git rev-list --count main; }
for i in 1 2 3 4 5 6 7 8 9 10; do [ "$(count)" -gt %d ] && break; sleep 1; done; count`, project, count)
	got := 0
	wait.Moving(t, fmt.Sprintf("%d changes of %s are merged", count, project), func() bool {
		out, err := in.exec(wait.Context(t), in.git, "git-0", "git", "sh", "-c", script)
		if err != nil {
			return false
		}
		n, err := strconv.Atoi(strings.TrimSpace(out))
		if err != nil { // a command whose connection was cut ends without output, and without an error
			return false
		}
		got = n
		return got > count // the first commit is nobody's change
	}, func() int { return got })
}

var resident = regexp.MustCompile(`(?m)^process_resident_memory_bytes (\S+)$`)

// memory notes the resident memory of a replica of each service and of the NATS
// server, by their own word.
func (in *installation) memory(t *testing.T, when string) {
	t.Helper()
	seen := map[string]int{}
	for _, p := range in.pods(t, "") {
		service := p.Labels["app.kubernetes.io/name"]
		if _, known := seen[service]; known {
			continue
		}
		seen[service] = in.residentMemory(t, service)
	}
	var list []string
	for service, bytes := range seen {
		if bytes < 1e6 {
			t.Errorf("%s says that it takes %d bytes of memory", service, bytes)
		}
		list = append(list, fmt.Sprintf("%s %.0f", service, float64(bytes)/1e6))
	}
	slices.Sort(list)
	figure(t, "memory %s, in MB: %s", when, strings.Join(list, ", "))
}

// residentMemory returns the resident memory of the first replica of a service, in bytes.
func (in *installation) residentMemory(t *testing.T, service string) int {
	t.Helper()
	if service == "nats" {
		var said struct{ Mem int }
		if err := json.Unmarshal([]byte(in.page(t, service, 8222, "/varz")), &said); err != nil {
			t.Fatal(err)
		}
		return said.Mem
	}
	m := resident.FindStringSubmatch(in.metrics(t, service))
	if m == nil {
		t.Fatalf("%s does not say how much memory it takes", service)
	}
	bytes, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		t.Fatal(err)
	}
	return int(bytes)
}
