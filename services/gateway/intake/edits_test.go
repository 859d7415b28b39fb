package intake_test

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pfl-forge/pfl-forge/services/gateway/intake"
)

// at returns a time so many seconds after a certain one.
func at(seconds int) time.Time { return now.Add(time.Duration(seconds) * time.Second) }

var (
	ada  = intake.Account{ID: 1, Login: "ada", Kind: intake.Member, Permission: intake.Write}
	bob  = intake.Account{ID: 2, Login: "bob", Kind: intake.Member, Permission: intake.Write}
	eve  = intake.Account{ID: 3, Login: "eve", Kind: intake.Outsider, Permission: intake.Read}
	tom  = intake.Account{ID: 4, Login: "tom", Kind: intake.Member, Permission: intake.Triage}
	prog = intake.Account{ID: 5, Login: "prog[bot]", Kind: intake.Bot, Permission: intake.Write}
)

// labelledAt returns an issue of eve, on which ada put a label at second 10, with edits.
func labelledAt(edits ...intake.Edit) *intake.Trigger {
	return &intake.Trigger{
		Forge: "work", Repository: "shop/web", RepositoryID: 3, Number: 12, Event: intake.Issue, Title: "Mend it", Body: "It crashes.", Author: eve,
		Labels: []intake.Label{{Name: "forge", By: ada, At: at(10)}}, Edits: edits,
	}
}

// TestEditsBehindTheAsker: an edit after the trigger by who may not trigger it
// has a person asked, and one before it, or by who may, does not.
func TestEditsBehindTheAsker(t *testing.T) {
	rules := parse(t, "rules: [{when: {label: forge, permission: write}, do: go, project: shop}]")
	for name, c := range map[string]struct {
		edits []intake.Edit
		want  intake.Do
		says  string
	}{
		"none":                            {nil, intake.Go, ""},
		"the author, before":              {[]intake.Edit{{By: eve, At: at(9)}}, intake.Go, ""},
		"the author, in the same second":  {[]intake.Edit{{By: eve, At: at(10)}}, intake.Ask, "by eve"},
		"the author, after":               {[]intake.Edit{{By: eve, At: at(11)}}, intake.Ask, "by eve"},
		"the asker, after":                {[]intake.Edit{{By: ada, At: at(11)}}, intake.Go, ""},
		"another who may, after":          {[]intake.Edit{{By: bob, At: at(11)}}, intake.Go, ""},
		"one with less right, after":      {[]intake.Edit{{By: tom, At: at(11)}}, intake.Ask, "by tom"},
		"a program with the right, after": {[]intake.Edit{{By: prog, At: at(11)}}, intake.Ask, "by prog"},
		"nobody who is known, after":      {[]intake.Edit{{At: at(11)}}, intake.Ask, "does not tell"},
		"nobody who is known, before":     {[]intake.Edit{{At: at(9)}}, intake.Go, ""},
		"the author, and then the asker":  {[]intake.Edit{{By: ada, At: at(12)}, {By: eve, At: at(11)}}, intake.Ask, "by eve"},
		"an account of the same name":     {[]intake.Edit{{By: intake.Account{ID: 9, Login: "ada"}, At: at(11)}}, intake.Ask, "by ada"},
	} {
		d := rules.Decide(labelledAt(c.edits...), nil, unused, now)
		if d.Do != c.want || (d.Edited == "") != (c.says == "") || !strings.Contains(d.Edited, c.says) {
			t.Errorf("%s: %s, %q", name, d.Do, d.Edited)
		}
		if explained := d.Explain(); strings.Contains(explained, "asked: ") != (c.says != "") {
			t.Errorf("%s is explained as %q", name, explained)
		}
	}
}

// TestEditsByTheRule: who may trigger is what the rule says, and when they did
// is when the label was put on, or the command written.
func TestEditsByTheRule(t *testing.T) {
	command := func(edits ...intake.Edit) *intake.Trigger {
		t := labelledAt(edits...)
		t.Event, t.Command, t.Commander, t.Commanded = intake.Comment, intake.Run, ada, at(20)
		return t
	}
	ofAda := func(edits ...intake.Edit) *intake.Trigger {
		t := labelledAt(edits...)
		t.Author, t.Labels = ada, nil
		return t
	}
	untimed := labelledAt(intake.Edit{By: eve, At: at(1)})
	untimed.Labels[0].At = time.Time{}
	for name, c := range map[string]struct {
		rules string
		t     *intake.Trigger
		want  intake.Do
	}{
		"before the command": {"{when: {command: run, permission: write}, do: go, project: p}", command(intake.Edit{By: eve, At: at(19)}), intake.Go},
		"after the command":  {"{when: {command: run, permission: write}, do: go, project: p}", command(intake.Edit{By: eve, At: at(20)}), intake.Ask},
		"label and command": {
			"{when: {label: forge, command: run, permission: write}, do: go, project: p}", command(intake.Edit{By: eve, At: at(15)}), intake.Go,
		},
		"by the number of the asker":      {"{when: {label: forge, asker_id: 1}, do: go, project: p}", labelledAt(intake.Edit{By: bob, At: at(11)}), intake.Ask},
		"of the author, by themselves":    {"{when: {permission: write}, do: go, project: p}", ofAda(intake.Edit{By: ada, At: at(11)}), intake.Go},
		"of the author, by another":       {"{when: {permission: write}, do: go, project: p}", ofAda(intake.Edit{By: tom, At: at(1)}), intake.Ask},
		"when it was labelled is unknown": {"{when: {label: forge, permission: write}, do: go, project: p}", untimed, intake.Ask},
		"asked anyway": {
			"{when: {label: forge, permission: write}, do: ask, project: p}", labelledAt(intake.Edit{By: eve, At: at(11)}), intake.Ask,
		},
		"ignored anyway": {"{when: {label: forge}, do: ignore}", labelledAt(intake.Edit{By: eve, At: at(11)}), intake.Ignore},
	} {
		d := parse(t, "rules: ["+c.rules+"]").Decide(c.t, nil, unused, now)
		if d.Do != c.want || (d.Edited != "") != (c.want == intake.Ask) {
			t.Errorf("%s: %s, %q", name, d.Do, d.Edited)
		}
	}
	own, err := intake.ParseNarrowing("own.yaml", []byte("rules: [{when: {label: forge, asker_id: 1}, do: go}]"))
	if err != nil {
		t.Fatal(err)
	}
	rules := parse(t, "rules: [{when: {label: forge, permission: write}, do: go, project: p}]")
	d := rules.Decide(labelledAt(intake.Edit{By: bob, At: at(11)}), own, unused, now)
	if d.Do != intake.Ask {
		t.Errorf("one who may not ask by the repository's own rule edited it, and it is %s", d.Do)
	}
}

// TestToldTexts: of deliveries follow edits that the forge does not tell, and none that it tells.
func TestToldTexts(t *testing.T) {
	type delivery struct {
		hash string
		at   int
		by   intake.Account
	}
	none := intake.Account{}
	for name, c := range map[string]struct {
		told  []delivery
		known []intake.Edit
		want  []intake.Edit
	}{
		"nothing":           {},
		"the text as it is": {told: []delivery{{"now", 10, none}}},
		"without a time":    {told: []delivery{{"then", -1, none}}},
		"another text":      {told: []delivery{{"then", 10, none}}, want: []intake.Edit{{At: at(10)}}},
		"another text, late and twice": {
			told: []delivery{{"now", 20, none}, {"then", 12, none}, {"then", 10, none}, {"then", 12, none}}, want: []intake.Edit{{At: at(12)}},
		},
		"another text, and an edit":       {told: []delivery{{"then", 10, none}, {"now", 20, bob}}, want: []intake.Edit{{By: bob, At: at(20)}}},
		"an edit, and another text since": {told: []delivery{{"then", 20, bob}}, want: []intake.Edit{{At: at(20)}, {By: bob, At: at(20)}}},
		"another text, which the forge told": {
			told: []delivery{{"then", 10, none}}, known: []intake.Edit{{By: eve, At: at(11)}}, want: []intake.Edit{{By: eve, At: at(11)}},
		},
		"another text since the forge told": {
			told: []delivery{{"then", 12, none}}, known: []intake.Edit{{By: eve, At: at(11)}}, want: []intake.Edit{{By: eve, At: at(11)}, {At: at(12)}},
		},
	} {
		var told intake.Delivered
		for _, d := range c.told {
			when := at(d.at)
			if d.at < 0 {
				when = time.Time{}
			}
			told.Add(d.hash, when, d.by)
		}
		got := told.Edits(c.known, "now")
		if len(got) != len(c.want) {
			t.Errorf("%s: %+v", name, got)
			continue
		}
		for i := range got {
			if got[i].By.ID != c.want[i].By.ID || !got[i].At.Equal(c.want[i].At) {
				t.Errorf("%s: %+v", name, got)
			}
		}
	}
}

// TestDeliveriesAreHints: whatever deliveries tell, in whatever order and how
// often, nothing is let in by it that is not without; and a text that was another
// one at the trigger is never let in unasked without an edit that is known.
func TestDeliveriesAreHints(t *testing.T) {
	rules := parse(t, "rules: [{when: {label: forge, permission: write}, do: go, project: shop}]")
	rapid.Check(t, func(t *rapid.T) {
		known := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) intake.Edit {
			return intake.Edit{By: rapid.SampledFrom([]intake.Account{ada, bob, eve, tom, {}}).Draw(t, "by"), At: at(rapid.IntRange(0, 20).Draw(t, "at"))}
		}), 0, 3).Draw(t, "known")
		var told intake.Delivered
		other := false
		for range rapid.IntRange(0, 200).Draw(t, "deliveries") {
			hash, second := rapid.SampledFrom([]string{"now", "then", "", "x", "y"}).Draw(t, "hash"), rapid.IntRange(0, 20).Draw(t, "second")
			by := rapid.SampledFrom([]intake.Account{ada, bob, eve, {}, {}, {}}).Draw(t, "editor")
			told.Add(hash, at(second), by)
			other = other || hash != "now" && hash != "" && second >= 10
		}
		without := rules.Decide(labelledAt(known...), nil, unused, now)
		edits := told.Edits(known, "now")
		with := rules.Decide(labelledAt(edits...), nil, unused, now)
		if with.Do == intake.Go && without.Do != intake.Go {
			t.Errorf("by deliveries it is %s, and %s without", with.Do, without.Do)
		}
		later := false
		for _, e := range edits {
			later = later || e.By.ID > 0 && !e.At.Before(at(10))
		}
		if other && with.Do == intake.Go && !later {
			t.Errorf("another text was seen at the trigger, and it is let in: %+v", edits)
		}
	})
}
