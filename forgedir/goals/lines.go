package goals

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/pattern"
)

// HistoryLine is a line of .e8/history.jsonl: an iteration of a goal, summed up.
type HistoryLine struct {
	Type string `json:"type" yaml:"type"`
	// Iteration counts from 1 over all runs of the goal.
	Iteration int    `json:"iteration" yaml:"iteration"`
	Approach  string `json:"approach"  yaml:"approach"`
	// Result is in the agent's words.
	Result string `json:"result" schema:"ExecutionStatus" yaml:"result"`
	Reason string `json:"reason" yaml:"reason"`
	// Artifacts are paths.
	Artifacts []string `json:"artifacts" yaml:"artifacts"`
	// Metadata has the facts about the iteration.
	Metadata HistoryMetadata `json:"metadata" yaml:"metadata"`
	// Next lists the work that is left.
	Next      *historyNext `json:"next"      yaml:"next"`
	Timestamp time.Time    `json:"timestamp" yaml:"timestamp"`
	Goal      string       `json:"goal"      schema:"intent"  yaml:"goal"`
}

// HistoryMetadata has the facts about an iteration: all but the tags are observed, not
// an agent's word.
type HistoryMetadata struct {
	ToolsUsed     []string `json:"tools_used"     yaml:"tools_used"`
	FilesModified []string `json:"files_modified" yaml:"files_modified"`
	ErrorType     *string  `json:"error_type"     yaml:"error_type"`
	TokensUsed    int64    `json:"tokens_used"    yaml:"tokens_used"`
	// StrategyTags are the agent's own, the only ones here that are.
	StrategyTags []string `json:"strategy_tags" yaml:"strategy_tags"`
}

// historyNext lists the work that an iteration left.
type historyNext struct {
	SuggestedAction string   `json:"suggested_action" yaml:"suggested_action"`
	Blockers        []string `json:"blockers"         yaml:"blockers"`
	PartialProgress *string  `json:"partial_progress" yaml:"partial_progress"`
	PendingItems    []string `json:"pending_items"    yaml:"pending_items"`
}

// KnowledgeLine is a line of .e8/knowledge.jsonl: something that a goal found out.
type KnowledgeLine struct {
	Type        string  `json:"type"         schema:"KnowledgeType" yaml:"type"`
	Category    string  `json:"category"     yaml:"category"`
	Content     string  `json:"content"      yaml:"content"`
	ExampleFile *string `json:"example_file" yaml:"example_file"`
	// SourceTask is the title of the goal that found it.
	SourceTask string `json:"source_task" yaml:"source_task"`
	Confidence string `json:"confidence"  schema:"Confidence" yaml:"confidence"`
	// AppliedCount counts the executions that it helped.
	AppliedCount int       `json:"applied_count" yaml:"applied_count"`
	CreatedAt    time.Time `json:"created_at"    yaml:"created_at"`
	// ID is <goal>/k<number>.
	ID string `json:"id" yaml:"id"`
}

// goalLine is a line that a file of goals has to have.
type goalLine struct {
	key  string // identifies the line, see knownLine
	text []byte // with its end
}

// historyLineOf returns the line of an iteration that is summed up.
func historyLineOf(goal forge.IntentID, s *forge.ExecutionSummary) (goalLine, error) {
	m := &s.Metadata
	l := HistoryLine{
		Type: "summary", Iteration: s.Iteration, Approach: s.Approach, Result: string(s.Result), Reason: s.Reason,
		Artifacts: listOf(s.Artifacts),
		Metadata: HistoryMetadata{
			ToolsUsed: listOf(m.ToolsUsed), FilesModified: listOf(m.FilesModified), ErrorType: orNull(m.ErrorType),
			TokensUsed: m.TokensUsed, StrategyTags: listOf(m.StrategyTags),
		},
		Timestamp: s.At.UTC(), Goal: string(goal),
	}
	if n := s.Next; n != nil {
		l.Next = &historyNext{n.SuggestedAction, listOf(n.Blockers), orNull(n.PartialProgress), listOf(n.PendingItems)}
	}
	return encodeLine(l)
}

// knowledgeLineOf returns the line of a piece of knowledge that helped applied times.
func knowledgeLineOf(k *forge.Knowledge, applied int) (goalLine, error) {
	return encodeLine(KnowledgeLine{
		Type: string(k.Type), Category: k.Category, Content: k.Content, ExampleFile: orNull(k.ExampleFile),
		SourceTask: k.SourceTask, Confidence: string(cmp.Or(k.Confidence, forge.ConfidenceMedium)), AppliedCount: applied,
		CreatedAt: k.CreatedAt.UTC(), ID: k.ID,
	})
}

// encodeLine returns a line with its key, which is computed as for lines that are read. It
// writes < and & as they are.
func encodeLine(v any) (goalLine, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return goalLine{}, err
	}
	known := parseLine(b.Bytes())
	return goalLine{known.key, b.Bytes()}, nil
}

// listOf returns an empty list instead of nil, so that it is written as [].
func listOf(list []string) []string { return append([]string{}, list...) }

// orNull returns nil for an empty text, so that it is written as null.
func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// knownLine identifies a line of a file. Lines with the same key stand for the same
// thing, whatever else a person made of them.
type knownLine struct {
	// key is empty for a line of a person, or a broken one.
	key string
	// id is that of knowledge; empty for iterations.
	id string
	// count has the ends of the digits of applied_count in the line; 0, 0: nowhere.
	count [2]int
}

// countOf finds a number, and never text that looks like it: there the quotes are
// escaped.
var countOf = pattern.New(`"applied_count"\s*:\s*([0-9]+)`)

// parseLine takes a line apart. The key has the time of the line, since two projects that
// followed each other in one folder may give two things the same name.
func parseLine(text []byte) knownLine {
	var l struct {
		Type      string    `json:"type"`
		Goal      string    `json:"goal"`
		Iteration int       `json:"iteration"`
		Timestamp time.Time `json:"timestamp"`
		ID        string    `json:"id"`
		CreatedAt time.Time `json:"created_at"`
	}
	rest := bytes.TrimPrefix(text, []byte("\ufeff"))
	cut := len(text) - len(rest)
	text = rest
	switch err := json.Unmarshal(text, &l); {
	case err != nil:
		return knownLine{}
	case l.Type == "summary" && l.Goal != "":
		return knownLine{key: fmt.Sprintf("%s %d %d", l.Goal, l.Iteration, l.Timestamp.UnixNano())}
	case l.ID == "":
		return knownLine{}
	}
	known := knownLine{key: fmt.Sprintf("%s %d", l.ID, l.CreatedAt.UnixNano()), id: l.ID}
	if at := countOf.FindStringSubmatchIndex(string(text)); at != nil {
		known.count = [2]int{cut + at[2], cut + at[3]}
	}
	return known
}

// lineFile is an overview of a file of lines.
type lineFile struct {
	keys map[string]bool
	// counts are the applied counts by the id of knowledge; several if a line is there twice.
	counts map[string][]int
}

// parseLines reads a file. It takes any content: a broken line has no key.
func parseLines(data []byte) *lineFile {
	f := &lineFile{keys: map[string]bool{}, counts: map[string][]int{}}
	for line := range bytes.Lines(data) {
		known := parseLine(line)
		f.keys[known.key] = true
		if n, ok := known.applied(line); ok {
			f.counts[known.id] = append(f.counts[known.id], n)
		}
	}
	return f
}

// applied returns the count of a line of this content; false if it has none.
func (l *knownLine) applied(line []byte) (int, bool) {
	if l.count == [2]int{} {
		return 0, false
	}
	n, err := strconv.Atoi(string(line[l.count[0]:l.count[1]]))
	return n, err == nil
}

// lacks returns the lines that the file has to get, in their order. A line that a person
// changed is not lacking as long as it has its key.
func (f *lineFile) lacks(want []goalLine) []goalLine {
	var out []goalLine
	for _, l := range want {
		if !f.keys[l.key] {
			out = append(out, l)
		}
	}
	return out
}

// miscounts reports whether some count differs from the tally's. Ids that the tally does
// not have are a person's, or of a project from before: their counts stay.
func (f *lineFile) miscounts(tally map[string]int) bool {
	for id, counts := range f.counts {
		want, known := tally[id]
		for _, n := range counts {
			if known && n != want {
				return true
			}
		}
	}
	return false
}

// recount returns the lines with the right counts, and changes nothing else of them: not
// even the white space, which may be a person's.
func recount(data []byte, tally map[string]int) []byte {
	var b bytes.Buffer
	for line := range bytes.Lines(data) {
		known := parseLine(line)
		n, counted := known.applied(line)
		if want, ok := tally[known.id]; !ok || !counted || n == want {
			b.Write(line)
			continue
		}
		b.Write(line[:known.count[0]])
		b.WriteString(strconv.Itoa(tally[known.id]))
		b.Write(line[known.count[1]:])
	}
	return b.Bytes()
}

// extended returns the lines with further ones. If a crash cut off the last line of
// these, it is completed; another last line without an end is a person's.
func extended(data []byte, lines []goalLine) []byte {
	out := bytes.Clone(data)
	tail := data[bytes.LastIndexByte(data, '\n')+1:]
	for n, l := range lines {
		if len(tail) > 0 && bytes.HasPrefix(l.text, tail) {
			out = append(out, l.text[len(tail):]...)
			lines = append(lines[:n:n], lines[n+1:]...)
			tail = nil
			break
		}
	}
	if len(tail) > 0 && len(lines) > 0 {
		out = append(out, '\n')
	}
	for _, l := range lines {
		out = append(out, l.text...)
	}
	return out
}
