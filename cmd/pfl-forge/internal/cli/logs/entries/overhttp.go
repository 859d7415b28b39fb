package entries

import (
	"context"
	"slices"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/target"
	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/internal/transcript"
)

// By HTTP there is no stream of transcripts: the gateway answers with the transcript
// of one attempt, whether its lines are still in the stream or were put into the
// store of objects. So an intent is read attempt by attempt, and put in order here.

// ReadHTTP shows what happened to an intent until now, in the order of time: its
// decisions, and the transcripts of its attempts. A transcript that is not there any
// more is left out, as by NATS. Attempts that the query does not want are not asked for.
// Entries of the same time stay in the order in which they were read: decisions first.
func ReadHTTP(ctx context.Context, t *target.Target, q *Query, show func(Entry)) error {
	all, err := Decisions(ctx, t, q.Intent)
	if err != nil {
		return err
	}
	attempts, err := attempted(ctx, t, q.Intent)
	if err != nil {
		return err
	}
	for _, a := range attempts {
		if q.Task != "" && a.Task != q.Task || q.Step != "" && a.Step != q.Step || q.Attempt != 0 && a.Number != q.Attempt {
			continue
		}
		lines, err := t.Transcript(ctx, document.TranscriptRequest{Intent: q.Intent, Task: a.Task, Step: a.Step, Attempt: a.Number})
		if err != nil {
			return err
		}
		for i := range lines {
			all = append(all, Entry{Line: lineOf(q, a, &lines[i])})
		}
	}
	slices.SortStableFunc(all, func(a, b Entry) int { return a.At.Compare(b.At) })
	for i := range all {
		if q.wants(&all[i]) {
			show(all[i])
		}
	}
	return nil
}

// attempted returns the attempts of an intent that have ended or go on, each once and without
// its claim. Claims are left out because a transcript has the lines of all claims of an attempt.
func attempted(ctx context.Context, t *target.Target, id forge.IntentID) (list []forge.Attempt, err error) {
	ended, err := t.Attempts(ctx, id)
	if err != nil {
		return nil, err
	}
	v, err := t.View(ctx, id)
	if err != nil {
		return nil, err
	}
	add := func(a forge.Attempt) {
		if !slices.Contains(list, a) {
			list = append(list, a)
		}
	}
	for i := range ended {
		add(forge.Attempt{Task: ended[i].TaskID, Step: ended[i].Step, Number: ended[i].Attempt})
	}
	for _, a := range v.Summary.Open {
		a.Claim = 0
		add(a)
	}
	return list, nil
}

// lineOf returns a line of a transcript with where it belongs.
func lineOf(q *Query, a forge.Attempt, l *document.TranscriptLine) transcript.Line {
	line := transcript.Line{
		At: l.At, Project: q.Project, Intent: q.Intent, Task: a.Task, Step: a.Step, Attempt: a.Number, Claim: l.Claim,
		Replica: forge.ReplicaID(l.Replica), Kind: forge.ProgressKind(l.Kind), Agent: l.Agent, Text: l.Text,
	}
	if u := l.Usage; u != nil {
		used := transcript.Usage(u.Usage())
		used.Calls = u.Calls
		line.Usage = &used
	}
	return line
}
