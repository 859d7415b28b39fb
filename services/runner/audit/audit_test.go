package audit_test

import (
	"strings"
	"testing"
	"time"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/journal"
	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/services/runner/audit"
)

// TestOrder: the newest event comes first, whichever journal was read first and
// although the newest message of each is handed out late; events of one journal
// stay in its order although a clock went back.
func TestOrder(t *testing.T) {
	began := time.Date(2026, 11, 28, 1, 0, 0, 0, time.UTC)
	entry := func(seq uint64, intent string, second int, reason string) *journal.Entry {
		key := forge.Key{Project: "shop", Intent: forge.IntentID(intent)}
		at := began.Add(time.Duration(second) * time.Second)
		e := &journal.Entry{Key: key, Record: &forge.Record{Events: []forge.Event{
			{ID: reason, To: key, At: at, Actor: "ada", Message: &forge.Pause{Reason: reason}},
		}}}
		e.Subject, e.Seq = "forge.journal.shop."+intent, seq
		return e
	}
	pager, err := audit.NewPager(document.AuditRequest{Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	r := audit.NewReader(forge.Key{Project: "shop"})
	for _, e := range []*journal.Entry{
		entry(1, "a", 1, "one"), entry(3, "b", 3, "three"), entry(5, "b", 50, "five"), entry(6, "b", 40, "six"), // a clock went back
		entry(2, "a", 2, "two"), entry(4, "a", 4, "four"),
	} {
		pager.Add(r.Add(e))
	}
	var got []string
	page := pager.Page(r)
	for i := range page.Events {
		got = append(got, page.Events[i].Data.Reason)
	}
	if list := strings.Join(got, " "); list != "six five four three two one" {
		t.Errorf("the order is %s", list)
	}
}

// TestAskedAgain: of the texts by which a publisher asks, the first is asked and every
// other one is asked again, also where a runner decided on two of them together.
func TestAskedAgain(t *testing.T) {
	key := forge.Key{Project: "shop", Intent: "a"}
	submit := func(title string) forge.Event {
		return forge.Event{
			ID: title, To: key, At: time.Unix(1, 0), Actor: "scanner",
			Message: &forge.Submit{Intent: forge.Intent{Settings: forge.Settings{Title: title}}},
		}
	}
	r := audit.NewReader(key)
	var got []string
	for seq, events := range [][]forge.Event{{submit("one"), submit("two")}, {submit("three")}} {
		e := &journal.Entry{Key: key, Record: &forge.Record{Events: events}}
		e.Subject, e.Seq = "forge.journal.shop.a", uint64(seq+1)
		for _, line := range r.Add(e) {
			got = append(got, line.Event.Data.Title+" "+line.Event.Data.Action)
		}
	}
	if list := strings.Join(got, ", "); list != "one asked, two asked_again, three asked_again" {
		t.Errorf("it is told as %s", list)
	}
}
