package config_test

import (
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge/config"
)

// TestMerge refuses, by field, what would not be one pull request for each task
// on a branch of its own, and what is not built.
func TestMerge(t *testing.T) {
	for text, want := range map[string]string{
		"merge: {how: pull}":                                        `merge.how: "pull" is not one of push, pull_request`,
		"merge: {method: queue, by: people}":                        "merge.method: queue is what pfl-forge puts a change into",
		"merge: {method: squish}":                                   `did you mean "squash"?`,
		"merge: {checks_wait: 59s}":                                 "merge.checks_wait: is 59s; must be between 1m and 24h",
		"merge: {checks_wait: 25h}":                                 "merge.checks_wait: is 25h0m0s; must be between 1m and 24h",
		"merge: {unit: commit}":                                     `merge.unit: "commit" is not one of task, intent`,
		"merge: {by: me}":                                           `merge.by: "me" is not one of forge, people`,
		"merge: {branch: work}":                                     "must have {task} in it once",
		`merge: {branch: "{task}/{task}"}`:                          "must have {task} in it once",
		`merge: {branch: "a..{task}"}`:                              "must not contain ..",
		`merge: {branch: "-{task}"}`:                                "must not start with -",
		`merge: {branch: "refs/heads/{task}"}`:                      "means something else",
		`merge: {branch: "{task}.lock"}`:                            "ends with .lock",
		`merge: {branch: "` + strings.Repeat("a", 190) + `{task}"}`: "is longer than 200 characters",
		`merge: {checks: [build, build]}`:                           `merge.checks[1]: "build" is given twice`,
		`merge: {checks: [pfl-forge/verify]}`:                       "is pfl-forge's own",
		`merge: {labels: [" x"]}`:                                   "merge.labels[0]",
		`merge: {labels: ["a\nb"]}`:                                 "must be one line",
		"merge: {draft: true}":                                      "a draft is never merged by the forge",
		"merge: {draught: true}":                                    "draught",
	} {
		if _, err := config.Parse([]byte(text + "\n")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	for text, want := range map[string]bool{
		"agent: claude": false, "merge: {unit: task}": false, "merge: {unit: intent}": true, "merge: {how: pull_request, unit: intent}": true,
	} {
		if u, err := config.Parse([]byte(text + "\n")); err != nil || u.Rules().MergeWhole != want {
			t.Errorf("%s: %v, or the rules read another unit", text, err)
		}
	}
	if q, err := config.Parse([]byte("merge: {how: pull_request, method: queue}\n")); err != nil || q.Rules().Pull.Method != "queue" {
		t.Errorf("a queue: %v", err)
	}
	p, err := config.Parse([]byte("merge: {how: push, method: squash, by: people, branch: 'bot/{task}', checks: [build], labels: [forge]}\n"))
	if err != nil || p.Merge.Method != "squash" || p.Merge.Branch != "bot/{task}" || p.Rules().Pull != nil {
		t.Errorf("%+v, %v; what is pushed has no policy of pull requests", p.Merge, err)
	}
	if p, err = config.Parse([]byte("merge: {how: pull_request, by: people, checks: [build], labels: [forge]}\n")); err != nil {
		t.Fatal(err)
	}
	if pull := p.Rules().Pull; pull == nil || pull.By != "people" || len(pull.Checks) != 1 || len(pull.Labels) != 1 {
		t.Errorf("the rules read %+v", pull)
	}
}
