package quota_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/quota"
)

// TestBook drives books, one for each of up to eight runners, through random orders
// of submissions, looks and ends: one book keeps to a quota exactly, of several each
// other one adds at most an eighth of it, and where there is room, nobody is refused.
func TestBook(t *testing.T) {
	for seed := range uint64(400) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		limits := quota.Limits{Project: 1 + rnd.IntN(40), System: 1 + rnd.IntN(20)}
		// The truth, which a book sees when it looks: what is open, and what has a journal.
		open, there := map[forge.Key]quota.Holder{}, map[forge.Key]bool{}
		var keys []forge.Key // of open, in an order that a seed gives again
		books := make([]*quota.Book, 1+rnd.IntN(8))
		for i := range books {
			books[i] = quota.NewBook(limits)
		}
		counted := func(project forge.ProjectID, system string) (ofProject, ofSystem int) {
			for _, h := range open {
				if h.Key.Project == project {
					ofProject++
				}
				if h.System == system && system != "" {
					ofSystem++
				}
			}
			return ofProject, ofSystem
		}
		for n := range 300 {
			if rnd.IntN(3) == 0 {
				if len(keys) > 0 { // one ends, and the books hear of it when they look
					i := rnd.IntN(len(keys))
					delete(open, keys[i])
					keys = slices.Delete(keys, i, i+1)
				}
				continue
			}
			h := quota.Holder{
				Key:    forge.Key{Project: forge.ProjectID(fmt.Sprintf("p%d", rnd.IntN(2))), Intent: forge.IntentID(fmt.Sprintf("i%d", n))},
				System: []string{"", "scanner", "ci"}[rnd.IntN(3)],
			}
			b := books[rnd.IntN(len(books))]
			if b.MustLook(h) {
				var list []quota.Holder
				for _, one := range open {
					list = append(list, one)
				}
				b.Look(list, func(k forge.Key) bool { return there[k] })
			}
			// One that enters has to have room by the truth, and one that is refused must have
			// none. What the other books give away without looking is an eighth of the quota each.
			others := len(books) - 1
			projects, systems := counted(h.Key.Project, h.System)
			entered, full := b.Enter(h)
			switch {
			case entered == (full != nil):
				t.Fatalf("seed %d: entered %v, %v", seed, entered, full)
			case entered && (projects >= limits.Project+others*(limits.Project/8) || h.System != "" && systems >= limits.System+others*(limits.System/8)):
				t.Fatalf("seed %d: %v of %v is let in with %d and %d open", seed, h, limits, projects, systems)
			case full != nil && full.Field == quota.OfProject && projects < limits.Project, full != nil && full.Field == quota.OfSystem && systems < limits.System:
				t.Fatalf("seed %d: %v of %v is refused with %d and %d open: %v", seed, h, limits, projects, systems, full)
			case entered && rnd.IntN(4) == 0:
				b.Leave(h) // the rules refused it
			case entered:
				open[h.Key], there[h.Key], keys = h, true, append(keys, h.Key)
			}
		}
	}
}

// TestEnteredTwice: the same intent takes one place, and is not said to be new.
func TestEnteredTwice(t *testing.T) {
	b := quota.NewBook(quota.Limits{Project: 2})
	h := quota.Holder{Key: forge.Key{Project: "shop", Intent: "a"}}
	if entered, full := b.Enter(h); !entered || full != nil {
		t.Fatal(entered, full)
	}
	if entered, full := b.Enter(h); entered || full != nil {
		t.Fatal(entered, full)
	}
	if entered, full := b.Enter(quota.Holder{Key: forge.Key{Project: "shop", Intent: "b"}}); !entered || full != nil {
		t.Fatal(entered, full)
	}
	_, full := b.Enter(quota.Holder{Key: forge.Key{Project: "shop", Intent: "c"}})
	if full == nil || full.Field != quota.OfProject || !strings.Contains(full.Reason, "2 open intents") || !strings.Contains(full.Reason, "try again after 1m") {
		t.Fatal(full)
	}
	if entered, full := b.Enter(quota.Holder{Key: forge.Key{Project: "site", Intent: "c"}}); !entered || full != nil {
		t.Error("another project has its own", entered, full)
	}
}

// TestDefaultsAreNotNoticed: a thousand intents of a laptop need no look at the
// journals but the first.
func TestDefaultsAreNotNoticed(t *testing.T) {
	b := quota.NewBook(quota.Limits{})
	looks := 0
	for n := range 1000 {
		h := quota.Holder{Key: forge.Key{Project: "shop", Intent: forge.IntentID(fmt.Sprint(n))}}
		if b.MustLook(h) {
			looks++
			b.Look(nil, func(forge.Key) bool { return false })
		}
		if _, full := b.Enter(h); full != nil {
			t.Fatal(n, full)
		}
	}
	if looks != 1 {
		t.Errorf("%d looks", looks)
	}
}
