package subjects

import (
	"testing"

	forge "github.com/pfl-forge/pfl-forge"
)

// FuzzOutside: what a subject of outsiders is taken for has the same subject
// again, and no name in it can become another token.
func FuzzOutside(f *testing.F) {
	for _, s := range []string{
		"forge.intent.p.submit", "forge.intent.p.by.a=2Eb.approve", "forge.intent.p.from.ci.submit", "forge.api.p.by.ada.clean", "forge.api.p.from.ci.submit",
		"forge.intent.p.by.a=2eb.via.gateway.approve", "forge.intent.p.by.a-b.via.gateway.approve", "forge.intent.p.from.ci.via.gateway.submit",
		"forge.api.p.by.ada.via.gateway.list",
		"forge.result.review.p.i", "forge.lease.review.p.i._", "forge.lease.x.p.i.i-001", "forge.transcript.p.i._.analyze.1.1",
		"forge.transcript.p.i.i-001.review.01.1", "forge.hook.work.0123456789abcdef0123456789abcdef",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, parse := range []func(string) (Sender, error){ParseIntent, ParseAPI} {
			from, err := parse(s)
			if err != nil {
				continue
			}
			if _, err := forge.ParseProjectID(string(from.Project)); err != nil || len(from.Name) > len(s) || from.Named != (from.Name != "") && !from.Named {
				t.Errorf("%q is from %+v", s, from)
			}
			if from.Person && from.Name != "" && len(from.Name) <= maxSender {
				again, err := Personal(forge.Key{Project: from.Project}, from.Name, from.Verb)
				if from.Via != "" {
					again, err = PersonalVia(forge.Key{Project: from.Project}, from.Name, from.Via, from.Verb)
				}
				if err == nil && again != s && s[:12] == "forge.intent" {
					t.Errorf("%q became %q", s, again)
				}
			}
		}
		if k, a, err := ParseTranscript(s); err == nil {
			if again, err := Transcript(k, a); err != nil || again != s {
				t.Errorf("%q became %q, %v", s, again, err)
			}
		}
		if step, k, err := ParseResult(s); err == nil {
			if again, err := Result(&forge.Result{To: k, Attempt: forge.Attempt{Step: step}}); err != nil || again != s {
				t.Errorf("%q became %q, %v", s, again, err)
			}
		}
		if hook, err := ParseDelivery(s); err == nil {
			if again, err := Delivery(hook, s[len(s)-32:]); err != nil || again != s {
				t.Errorf("%q became %q, %v", s, again, err)
			}
		}
		if step, k, err := ParseLease(s); err == nil {
			if _, err := Lease(k, "", step); err != nil {
				t.Errorf("%q is the lease of nothing: %v", s, err)
			}
		}
	})
}
