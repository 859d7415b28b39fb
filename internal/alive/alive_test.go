package alive_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/pfl-forge/pfl-forge/internal/alive"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

func TestStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w alive.Watch
		waits, works, stuck, gone := w.Loop("waits"), w.Loop("works"), w.Loop("stuck"), w.Loop("gone")
		waits.Busy()
		waits.Rest()
		for _, l := range []*alive.Loop{works, stuck, gone} {
			l.Busy()
		}
		another := w.Loop("stuck")
		<-wait.Briefly(t, 30*time.Second).Done()
		works.Busy() // the next thing
		another.Busy()
		<-wait.Briefly(t, 30*time.Second).Done()
		if err := w.Stuck(); err != nil {
			t.Errorf("after a minute: %v", err)
		}
		<-wait.Briefly(t, time.Second).Done()
		gone.End()
		if err := w.Stuck(); err == nil || err.Error() != "stands still: stuck: 1 for up to 1m1s" {
			t.Errorf("got %v", err)
		}
		<-wait.Briefly(t, 30*time.Second).Done()
		if err := w.Stuck(); err == nil || err.Error() != "stands still: stuck: 2 for up to 1m31s, works: 1 for up to 1m1s" {
			t.Errorf("got %v", err)
		}
		for _, l := range []*alive.Loop{works, stuck, another} {
			l.Rest()
		}
		if err := w.Stuck(); err != nil {
			t.Errorf("all rest: %v", err)
		}
	})
}

func TestNobodyWatches(t *testing.T) {
	var w *alive.Watch
	l := w.Loop("x")
	l.Busy()
	l.Rest()
	l.End()
	if err := w.Stuck(); err != nil {
		t.Error(err)
	}
}
