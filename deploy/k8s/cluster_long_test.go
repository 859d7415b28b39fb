//go:build cluster

package k8s

import (
	"os"
	"strings"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// hold returns for how long an agent's call is held at least while its replica has to go.
func hold() time.Duration {
	if d, err := time.ParseDuration(os.Getenv("K8S_HOLD")); err == nil {
		return d
	}
	return 5 * time.Minute
}

// longCall scales implementers from four to none while one has an agent at work, which goes
// on to its end; meanwhile is done at that time. Then every volume of an implementer is lost:
// the review's rejection finds session and commits of the task all the same.
func (in *installation) longCall(t *testing.T, meanwhile func()) {
	t.Helper()
	began := time.Now()
	in.scale(t, 4)
	in.ready(t, "implementer", 4)
	figure(t, "three more implementers are ready %s after they were asked for", time.Since(began).Round(time.Second))
	in.ask(t, "the long report")
	wait.Seldom(t, "the agent is at work", func() bool { return in.held(t) == "1" })
	in.scale(t, 0)
	var busy core.Pod
	wait.Seldom(t, "one replica is left", func() bool {
		pods := in.pods(t, "implementer")
		if len(pods) == 0 {
			t.Fatal("the replica with an agent at work is gone")
		}
		busy = pods[0]
		return len(pods) == 1
	})
	meanwhile()
	if pods := in.pods(t, "implementer"); len(pods) != 1 || pods[0].UID != busy.UID || pods[0].DeletionTimestamp == nil {
		t.Fatalf("while the call goes on there are %d implementers", len(pods))
	}
	in.ofModel(t, "release")
	said := ""
	wait.Moving(t, "the call goes on", func() bool { said = in.ofModel(t, "past"); return strings.HasPrefix(said, "true") }, func() string { return said })
	in.ready(t, "implementer", 0)
	figure(t, "%s ended %s after its agent's call began", busy.Name, time.Since(began).Round(time.Second))
	in.loseVolumes(t, "implementer")

	in.scale(t, 1)
	began = time.Now()
	in.ready(t, "implementer", 1)
	figure(t, "an implementer with an empty volume is ready after %s", time.Since(began).Round(time.Second))
	text := in.file(t, "long.txt", func(content string) bool { return strings.Count(content, "\n") == 2 })
	if want := "forge-" + busy.Name + "-"; !strings.HasPrefix(text, want) || !strings.HasSuffix(text, "\nagain\n") {
		t.Errorf("the change is %q, want the work of %s and what its session added", text, busy.Name)
	}
	if held := in.held(t); held != "1" {
		t.Errorf("the call was made %s times", held)
	}
}

// held returns how many calls the model held.
func (in *installation) held(t *testing.T) string {
	t.Helper()
	return in.ofModel(t, "held")
}

// ofModel asks the scripted model.
func (in *installation) ofModel(t *testing.T, what string) string {
	t.Helper()
	out, err := in.exec(wait.Context(t), in.git, "model", "testpod", "/testpod", "get", "http://127.0.0.1:8080/"+what)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// loseVolumes deletes the volumes of a service that has no replica.
func (in *installation) loseVolumes(t *testing.T, service string) {
	t.Helper()
	claims := in.client.CoreV1().PersistentVolumeClaims(in.namespace)
	list, err := claims.List(wait.Context(t), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	lost := 0
	for _, claim := range list.Items {
		if !strings.HasPrefix(claim.Name, "state-"+service+"-") {
			continue
		}
		lost++
		if err := claims.Delete(wait.Context(t), claim.Name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		wait.Seldom(t, claim.Name+" is gone", func() bool {
			_, err := claims.Get(wait.Context(t), claim.Name, metav1.GetOptions{})
			return apierrors.IsNotFound(err)
		})
	}
	if lost == 0 {
		t.Fatalf("%s has no volumes", service)
	}
}
