//go:build cluster

package k8s

import (
	"errors"
	"flag"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pfl-forge/pfl-forge/agent/process/executortest"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// together is what the tests of one run share, which go on side by side: most of the time of an
// installation is spent on waiting, and two cores have room for others meanwhile.
var together struct {
	mu sync.Mutex
	// tests are those that have found the cluster and have not ended.
	tests int
	// before has what was outside of namespaces, and the namespaces, when the first of them began.
	before []string
	// made are objects outside of namespaces that several of them need; they go with the last.
	made []*unstructured.Unstructured
	// node has the profile of components/inner-sandbox, once a test has put it
	// there; it goes with the last.
	node string
	// down takes away a cluster that the first of them has brought up; nil for another one.
	down func(t *testing.T)
}

// join counts a test. When the last one ends, what is outside of namespaces, and the
// namespaces, are as before the first began, and a cluster that was brought up for
// them goes. What others take away meanwhile does not matter. It is called before
// anything is asked of the cluster, so that one that does not answer goes, too.
func (c *cluster) join(t *testing.T) {
	t.Helper()
	together.mu.Lock()
	defer together.mu.Unlock()
	together.tests++
	t.Cleanup(func() { c.leave(t) })
}

// look notes what the cluster has before the first test makes anything.
func (c *cluster) look(t *testing.T) {
	t.Helper()
	together.mu.Lock()
	defer together.mu.Unlock()
	if together.before == nil {
		together.before = c.global(t)
	}
}

func (c *cluster) leave(t *testing.T) {
	t.Helper()
	together.mu.Lock()
	defer together.mu.Unlock()
	if together.tests--; together.tests > 0 {
		return
	}
	// It goes also where something below ends the test.
	defer func() {
		if together.down != nil {
			together.down(t)
		}
		together.down, together.before = nil, nil
	}()
	if together.before == nil {
		return // nothing was made
	}
	for _, u := range slices.Backward(together.made) {
		c.remove(t, u)
	}
	together.made = nil
	if together.node != "" {
		c.removeNamespace(t, profileNamespace)
		together.node = ""
	}
	wait.Until(t, "everything is gone that the tests made", func() bool {
		return !slices.ContainsFunc(c.global(t), func(name string) bool { return !slices.Contains(together.before, name) })
	})
}

// share has objects outside of namespaces go when the last test ends, instead
// of with the one that made them.
func share(objects ...*unstructured.Unstructured) {
	together.mu.Lock()
	defer together.mu.Unlock()
	for _, u := range objects {
		if !slices.ContainsFunc(together.made, func(o *unstructured.Unstructured) bool {
			return o.GroupVersionKind() == u.GroupVersionKind() && o.GetName() == u.GetName()
		}) {
			together.made = append(together.made, u)
		}
	}
}

// queue has the tests of one kind that may go on side by side, those that take
// long first: the last one to begin decides when all have ended.
type queue struct {
	// waiting has the minutes of those that wait, the longest first; busy counts the others.
	waiting []int
	busy    int
}

// queues has the long tests, as many of which go on at once as K8S_PARALLEL says, and
// the light ones, one of which goes on beside them: two cores that have two
// installations wait for a tenth of the time, and a third long one is too much for them.
var queues = struct {
	mu          sync.Mutex
	free        sync.Cond
	long, light queue
}{}

// light is how many minutes a light test takes at most.
const light = 6

// externalMetrics is held by who answers for external metrics: a cluster has one that does.
var externalMetrics sync.Mutex

// beside has a test that takes so many minutes go on beside others. Everything before
// it is done by one test after the other: images are built once, and for all cores.
func beside(t *testing.T, minutes int) {
	t.Helper()
	most := 2
	if n, err := strconv.Atoi(os.Getenv("K8S_PARALLEL")); err == nil && n > 0 {
		most = n
	}
	q := &queues.long
	if most > 1 && minutes <= light {
		q, most = &queues.light, 1
	}
	l := &queues
	l.mu.Lock()
	l.free.L = &l.mu
	q.waiting = append(q.waiting, minutes)
	slices.SortFunc(q.waiting, func(a, b int) int { return b - a })
	l.mu.Unlock()
	t.Parallel()
	l.mu.Lock()
	for q.busy >= most || q.waiting[0] != minutes {
		l.free.Wait()
	}
	q.waiting = q.waiting[1:]
	q.busy++
	l.free.Broadcast()
	l.mu.Unlock()
	began := time.Now()
	t.Cleanup(func() {
		figure(t, "%s took %s beside others", t.Name(), time.Since(began).Round(time.Second))
		l.mu.Lock()
		defer l.mu.Unlock()
		q.busy--
		l.free.Broadcast()
	})
}

// TestMain has go test hold back no test that beside holds back: it would do so in another order.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := errors.Join(flag.Set("test.parallel", "64"), os.Setenv(executortest.Secret, "canary")); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}
