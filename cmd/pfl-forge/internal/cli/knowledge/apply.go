package knowledge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/pending"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/target"
	"github.com/pfl-forge/pfl-forge/internal/term"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/knowledge"
)

const applyHelp = `Read a file of knowledge back, such as .e8/knowledge.jsonl that you edited: an object a line, as in
that file and as knowledge list -o json prints them.

A line whose id is known corrects that piece where it says something else; a line without an id is
added, unless it is known already. With --prune, what has no line in the file is forgotten. A file
with a mistake changes nothing. --dry-run prints what would be done.`

// maxFile bounds a file of knowledge, in bytes: several times as much as a project keeps.
const maxFile = 8 << 20

// change is one thing that a file asks for.
type change struct {
	// who names the piece for a person, and done says what became of it.
	who, done string
	message   *forge.Teach
}

// applyCommand returns the command that reads back what list has written to a file and a person
// has edited. Without --prune a piece that is missing there stays: it may be newer than the file.
func applyCommand(a *kit.App) *cobra.Command {
	var prune, dryRun bool
	cmd := &cobra.Command{
		Use: "apply <file>|-", Short: "read an edited file of knowledge back",
		Long:    applyHelp,
		Example: "  pfl-forge knowledge apply .e8/knowledge.jsonl --dry-run\n  pfl-forge knowledge list -o json | jq ... | pfl-forge knowledge apply -",
		Args:    kit.Between(1, 1, "the file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			data, err := readFile(a, args[0])
			if err != nil {
				return err
			}
			lines, err := parse(args[0], data)
			if err != nil {
				return err
			}
			return apply(cmd.Context(), a, args[0], lines, prune, dryRun)
		},
	}
	set := cmd.Flags()
	set.BoolVar(&prune, "prune", false, "forget what has no line in the file")
	set.BoolVar(&dryRun, "dry-run", false, "print what would be done, and change nothing")
	return cmd
}

// readFile returns a file, or standard input for -. A longer file is an error and is
// not cut, which would look like a shorter one, and with --prune forget the rest.
func readFile(a *kit.App, path string) ([]byte, error) {
	in := a.In
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}
	data, err := io.ReadAll(io.LimitReader(in, maxFile+1))
	if err == nil && len(data) > maxFile {
		err = fmt.Errorf("%s: is longer than %d bytes", path, maxFile)
	}
	return data, err
}

// parse returns the pieces of a file: objects one after the other, or one list
// of them. Empty fields have their defaults, as in knowledge add. The error
// names the object, counted from 1, and the field.
//
// Fields that no piece has are an error, so that a misspelt one is not dropped. The same
// id twice is one as well. FuzzParse in this package reads whatever a person may give.
func parse(path string, data []byte) ([]forge.Knowledge, error) {
	var raw []json.RawMessage
	if trimmed := bytes.TrimSpace(data); len(trimmed) > 0 && trimmed[0] == '[' {
		if err := json.Unmarshal(trimmed, &raw); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	} else {
		for dec := json.NewDecoder(bytes.NewReader(data)); ; {
			var one json.RawMessage
			if err := dec.Decode(&one); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				return nil, fmt.Errorf("%s: object %d: %w", path, len(raw)+1, err)
			}
			raw = append(raw, one)
		}
	}
	seen := map[string]int{}
	list := make([]forge.Knowledge, 0, len(raw))
	for i, one := range raw {
		p := piece{Type: string(forge.KnowledgeLesson), Confidence: string(forge.ConfidenceHigh)}
		dec := json.NewDecoder(bytes.NewReader(one))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&p); err != nil {
			return nil, fmt.Errorf("%s: object %d: %s", path, i+1, strings.TrimPrefix(err.Error(), "json: "))
		}
		k := forge.Knowledge{
			ID: p.ID, Type: forge.KnowledgeType(p.Type), Category: p.Category, Content: p.Content, ExampleFile: p.ExampleFile,
			Confidence: forge.Confidence(p.Confidence),
		}
		if e := knowledge.Validate(&k); e != nil {
			return nil, fmt.Errorf("%s: object %d: %s: %s", path, i+1, e.Field, e.Reason)
		}
		if k.ID != "" {
			if n := seen[k.ID]; n > 0 {
				return nil, fmt.Errorf("%s: object %d: id: %q is that of object %d, too", path, i+1, term.Short(k.ID, 60), n)
			}
			seen[k.ID] = i + 1
		}
		list = append(list, k)
	}
	return list, nil
}

// changes returns the corrections, additions and removals that a file makes to
// what is known. A line whose id is unknown is an error: what it stands for was
// forgotten, here or by another person, and an addition would bring it back.
//
// They are in the order of the file, and then what is forgotten in the order of
// known. A file without any piece and with prune is an error: it is more likely
// a failed pipe than a wish to forget everything.
func changes(path string, known, file []forge.Knowledge, prune bool) ([]change, error) {
	if prune && len(file) == 0 {
		return nil, fmt.Errorf("%s: --prune: it has no piece of knowledge; pfl-forge knowledge forget removes single ones", path)
	}
	byID, byText, kept := map[string]*forge.Knowledge{}, map[string]bool{}, map[string]bool{}
	for i := range known {
		byID[known[i].ID] = &known[i]
		byText[known[i].Content] = true
	}
	var list []change
	for i := range file {
		k := file[i]
		was := byID[k.ID]
		kept[k.ID] = true
		switch {
		case k.ID == "" && byText[k.Content]:
			kept[idOf(known, k.Content)] = true
		case k.ID == "":
			list = append(list, change{term.Short(k.Content, 40), "is known now", &forge.Teach{Knowledge: &k}})
		case was == nil:
			return nil, fmt.Errorf("%s: object %d: id: the project knows nothing of %q; leave the id out to add it anew", path, i+1, term.Short(k.ID, 60))
		case says(was) != says(&k):
			list = append(list, change{k.ID, "corrected", &forge.Teach{ID: k.ID, Knowledge: &k}})
		}
	}
	for i := range known {
		if id := known[i].ID; prune && !kept[id] {
			list = append(list, change{id, "forgotten", &forge.Teach{ID: id}})
		}
	}
	return list, nil
}

// idOf returns the id of the piece with a text.
// It is empty if there is none.
func idOf(known []forge.Knowledge, text string) string {
	for i := range known {
		if known[i].Content == text {
			return known[i].ID
		}
	}
	return ""
}

// says returns the part of a piece that a person writes.
// Two are compared by it: counts, times and authors in a file are not read back.
func says(k *forge.Knowledge) forge.Knowledge {
	return forge.Knowledge{Type: k.Type, Category: k.Category, Content: k.Content, ExampleFile: k.ExampleFile, Confidence: k.Confidence}
}

// apply sends the changes that a file makes, each as a message of its own.
//
// All changes are known to be valid before the first is sent. One that is
// refused does not hold back the others, and the exit code says so. Another
// person's change between the look and the wish is not seen.
func apply(ctx context.Context, a *kit.App, path string, file []forge.Knowledge, prune, dryRun bool) error {
	known, err := read(ctx, a, "")
	if err != nil {
		return err
	}
	list, err := changes(path, known, file, prune)
	if err != nil {
		return err
	}
	if len(list) == 0 {
		a.Say("nothing to do: the project knows just that")
		return nil
	}
	if dryRun {
		for i := range list {
			fmt.Fprintf(a.Out, "%s would be: %s\n", term.Line(list[i].who), list[i].done)
		}
		return nil
	}
	return target.Once(ctx, a, func(t *target.Target) error {
		b := pending.Batch{App: a}
		for i := range list {
			b.Send(ctx, t, term.Line(list[i].who), list[i].done, forge.Event{To: t.Key("").ProjectKey(), Message: list[i].message})
		}
		return b.End(t)
	})
}
