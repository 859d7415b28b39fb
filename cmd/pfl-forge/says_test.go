package main

import (
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/requests"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// says has the system scanner ask for an intent, with a recipe, at the server of a repository in
// which a run goes on; or, where it did before, say that it has another title now: says <folder>
// <intent> <title>. With comment in place of the title it tells of a comment of somebody.
func says(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: says <folder> <intent> <title>|comment")
	}
	text, err := os.ReadFile(filepath.Join(ts.MkAbs(args[0]), ".forge", "nats", "client.json"))
	ts.Check(err)
	var e struct{ URL, Token string }
	ts.Check(json.Unmarshal(text, &e))
	ctx, cancel := wait.Bounded()
	defer cancel()
	b, err := bus.Connect(ctx, bus.Config{URL: e.URL, Token: e.Token, Replicas: 1, Logger: slog.New(slog.DiscardHandler)})
	ts.Check(err)
	defer b.Close()
	key := forge.Key{Project: forge.ProjectID(filepath.Base(ts.MkAbs(args[0]))), Intent: forge.IntentID(args[1])}
	caller := requests.Caller{Name: "scanner", Gateway: "gateway", Account: "scanner account 1 eve", Ref: "findings/1"}
	if args[2] == "comment" {
		_, err = b.Submissions.TellFor(ctx, &caller, key, &forge.Comments{
			Count: 1, Account: "scanner account 5 eve", Ref: "findings/1 comment 7", At: time.Now(),
		})
		ts.Check(err)
		return
	}
	_, err = b.Submissions.SubmitFor(ctx, &caller, forge.Intent{
		ID: key.Intent, Project: key.Project, Settings: forge.Settings{Title: strings.TrimSpace(args[2]), Body: "Please.", Recipe: "plain"},
		Source: forge.SourceSystem, Origin: forge.Origin{System: caller.Name, EventID: args[1]},
	})
	ts.Check(err)
}
