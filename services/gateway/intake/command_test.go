package intake_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pfl-forge/pfl-forge/services/gateway/intake"
)

// person is an account that may say anything.
var person = intake.Account{ID: 7, Login: "ada", Kind: intake.Member}

// verbsIn returns the verbs of the commands that are found in a comment of a
// person; what is wrong counts as "?".
func verbsIn(body string) string {
	var found []string
	for _, c := range intake.Commands(intake.Said{Author: person, Body: body}, 1) {
		if c.Wrong != "" {
			found = append(found, "?")
		} else {
			found = append(found, string(c.Verb))
		}
	}
	return strings.Join(found, " ")
}

func TestCommandsStandInOrdinaryText(t *testing.T) {
	for body, want := range map[string]string{
		"/forge run":                                            "run",
		"Please.\n/forge retry now\nThanks.":                    "", // a paragraph of commands has nothing else
		"Please.\n\n/forge retry now\n\nThanks.":                "retry",
		"/forge pause\r\n\r\n/forge resume":                     "pause resume",
		"/FORGE run":                                            "",
		"/forge RUN":                                            "run",
		"/forge":                                                "?",
		"/forgery run":                                          "",
		" /forge run":                                           "",
		"please /forge run":                                     "",
		"> /forge run":                                          "",
		"> quoted\n/forge run":                                  "", // a lazy line of the quotation
		"> quoted\n\n/forge run":                                "run",
		"```\n/forge run\n```":                                  "",
		"~~~\n/forge run":                                       "",
		"    /forge run":                                        "",
		"\t/forge run":                                          "",
		"text `code\n/forge run\ncode`":                         "",
		"<!-- \n/forge run\n-->":                                "",
		"text <!-- \n/forge run\n-->":                           "",
		"<details>\n/forge run\n</details>":                     "",
		"- item\n/forge run":                                    "", // a lazy line of the item
		"- item\n\n  /forge run":                                "",
		"1. item\n\n/forge run":                                 "run",
		"# /forge run":                                          "",
		"/forge run\n---":                                       "", // a heading
		"[text\n/forge run](https://a.test)":                    "",
		"**text\n/forge run\n**":                                "",
		"**text\n/forge run**":                                  "",
		"/forge r\u200bun":                                      "",
		"/forge run \u202enur":                                  "",
		"/forge cancel all":                                     "?",
		"/forge destroy":                                        "?",
		"|a|\n|---|\n/forge run":                                "",
		"/forge run\n/forge pause":                              "run pause",
		"/forge run\nthanks":                                    "",
		"/forge reject a *b\n/forge run*":                       "",
		"/forge reject a ~~b\n/forge run~~":                     "",
		"/forge reject a $b\n/forge run$":                       "",
		"~~a\n/forge run\n~~":                                   "",
		"[^1]: x\n/forge run":                                   "",
		"see[^1]\n\n[^1]: x\n/forge run":                        "",
		"<details>\n\n/forge approve 0123456\n\n</details>":     "",
		"<div hidden>\n\n/forge run\n\n</div>":                  "",
		"<blockquote>\n\n/forge run":                            "",
		"text <details>\n\n/forge run":                          "",
		"- item <details>\n\n/forge run":                        "",
		"<!-- a --> <details>\n\n/forge run":                    "",
		"/forge run\n\n<details>\n\n/forge pause\n\n</details>": "run",
		">>>\nquoted\n\n/forge run\n\n>>>":                      "",
		"/forge run\n\n>>>\n\n/forge pause":                     "run",
		"$$\n\n/forge run\n\n$$":                                "",
		"a $$\n\n/forge run\n\n$$":                              "",
		"\\[\n\n/forge run\n\n\\]":                              "",
		"---\n/forge run\n\na: b\n---":                          "", // front matter
		"+++\n/forge run\n\n+++":                                "",
		"/forge approve\t0123456":                               "approve",
		"/forge\tanswer\t1\tyes":                                "answer",
	} {
		if got := verbsIn(body); got != want {
			t.Errorf("%q: %q, want %q", body, got, want)
		}
	}
}

func TestCommandsAreRead(t *testing.T) {
	body := "/forge approve `0123ABCDEF`\n/forge answer 2  hello  world \n/forge reject no thanks\n/forge run fmt\n" +
		"/forge approve 12\n/forge answer x y\n/forge stauts\n" +
		"/forge changes `0123ABC` keep the  old name\n/forge changes 0123abc\n/forge changes keep the old name"
	want := []intake.Command{
		{Line: 1, Verb: intake.Approve, Hash: "0123abcdef"},
		{Line: 2, Verb: intake.Answer, Question: 2, Text: "hello  world"},
		{Line: 3, Verb: intake.Reject, Text: "no thanks"},
		{Line: 4, Verb: intake.Run, Text: "fmt"},
		{Line: 5, Wrong: "an approval names the hash of the plan that was read: `/forge approve <hash>`"},
		{Line: 6, Wrong: "an answer names the question by its number: `/forge answer <number> <text>`"},
		{Line: 7, Wrong: "there is no such command; the closest is `/forge status`"},
		{Line: 8, Verb: intake.Changes, Hash: "0123abc", Text: "keep the  old name"},
		{Line: 9, Wrong: "changes are asked for by the hash of what was read, and in words: `/forge changes <hash> <text>`"},
		{Line: 10, Wrong: "changes are asked for by the hash of what was read, and in words: `/forge changes <hash> <text>`"},
	}
	if diff := cmp.Diff(want, intake.Commands(intake.Said{Author: person, Body: body}, 1)); diff != "" {
		t.Errorf("commands (-want +got):\n%s", diff)
	}
}

func TestWhoCommandsNothing(t *testing.T) {
	said := intake.Said{Author: person, Body: "/forge run"}
	if len(intake.Commands(said, 1)) != 1 {
		t.Fatal("a person commands nothing")
	}
	if len(intake.Commands(said, person.ID)) != 0 {
		t.Error("it obeys itself")
	}
	edited := said
	edited.Edited = true
	if len(intake.Commands(edited, 1)) != 0 {
		t.Error("it obeys a comment that was edited after it was read")
	}
	said.Author.Kind = intake.Bot
	if len(intake.Commands(said, 1)) != 0 {
		t.Error("it obeys a bot")
	}
	said.Author.Kind = ""
	if len(intake.Commands(said, 1)) != 0 {
		t.Error("it obeys an account of which nothing is known")
	}
	said.Author = intake.Account{Login: "ada", Kind: intake.Member}
	if len(intake.Commands(said, 1)) != 0 {
		t.Error("it obeys an account without a number")
	}
	said.Author = person
	if len(intake.Commands(said, 0)) != 0 {
		t.Error("it obeys although it does not know who it is")
	}
}

// TestCommandsAreBounded: a comment commands only so much, and no line of any length.
func TestCommandsAreBounded(t *testing.T) {
	if n := strings.Count(verbsIn(strings.Repeat("/forge run\n", 500)), "run"); n != 10 {
		t.Errorf("a comment has %d commands", n)
	}
	if got := verbsIn("/forge retry " + strings.Repeat("x", 5000)); got != "" {
		t.Errorf("a line of 5,000 bytes is %q", got)
	}
}

// TestNothingQuotedIsObeyed: whatever stands in a comment, the answer that
// quotes it commands nothing.
func TestNothingQuotedIsObeyed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		body := markdown().Draw(t, "body")
		for name, out := range map[string]string{
			"Quote": intake.Quote(body, secrets, 2000), "Plain": intake.Plain(body, secrets, 2000),
		} {
			if got := verbsIn(out); got != "" {
				t.Errorf("%s of %q commands %q: %q", name, body, got, out)
			}
		}
	})
}

// markdown draws texts of pieces that mean something to a forge or to a bot.
func markdown() *rapid.Generator[string] {
	piece := rapid.SampledFrom([]string{
		"/forge run", "/forge approve 0123456", "\n", "\n\n", "> ", "```", "~~~", "`", "<!--", "-->", "    ", "- ", "1. ", "# ", "---", "@ada", "@org/team",
		"#12", "o/r#12", "!3", "GH-4", "Closes ", "fixes: ", "Resolved ", "https://a.test/o/r/issues/1", "<img src=x alt='y'>", "[a](b 'c')", "![a](b)", "&lt;",
		"&#64;ada", "\\", "\u200b", "\u202e", "\x1b[2J", "\x00", "é", "word", " ", "\t", "*", "_", "**", "|", "$x$", "/lgtm", "r+", "\xff", "www.a.test",
		"\u00a0/merge", "\u3000", "\nbors r+", "\n/retest", "\nok to test", "GL-12", "ABC1-12", "[issue:12]", "0123456789abcdef0123456789abcdef01234567", "</p>",
	})
	return rapid.Map(rapid.SliceOfN(piece, 0, 20), func(p []string) string { return strings.Join(p, "") })
}

func FuzzCommands(f *testing.F) {
	for _, s := range []string{
		"/forge run", "> a\n/forge run", "```\n/forge run\n```\n/forge answer 1 x", "<!--\n/forge run\n-->", "`a\n/forge run`", "\t/forge run\r\n",
		"|a|\n|---|\n/forge run", "[^1]: a\n/forge run\n\nb[^1]", "![](a)[](b)", "```a b\n", "[a]: b (c)\n/forge run", "&#8203;\ufe0f",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, body string) {
		lines := strings.Split(body, "\n")
		for _, c := range intake.Commands(intake.Said{Author: person, Body: body}, 1) {
			if !strings.HasPrefix(lines[c.Line-1], intake.Prefix) || (c.Wrong == "") == (c.Verb == "") {
				t.Errorf("%q has the command %+v", body, c)
			}
		}
	})
}
