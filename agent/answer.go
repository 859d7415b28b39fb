package agent

import (
	"bytes"
	_ "embed" // the schemas
	"encoding/json"
	"fmt"
	"strings"

	"github.com/pfl-forge/pfl-forge"
)

// The JSON schemas of the answers. They use only the keywords that every back end
// supports; see ValidateSchema of package cli.
var (
	//go:embed schema/analysis.json
	AnalysisSchema []byte
	//go:embed schema/implementation.json
	ImplementationSchema []byte
	//go:embed schema/review.json
	ReviewSchema []byte
	//go:embed schema/audit.json
	AuditSchema []byte
	//go:embed schema/observed.json
	ObservedSchema []byte
	//go:embed schema/abstraction.json
	AbstractionSchema []byte
	//go:embed schema/reflection.json
	ReflectionSchema []byte
	//go:embed schema/intake.json
	IntakeSchema []byte
	//go:embed schema/summarization.json
	SummarizationSchema []byte
	//go:embed schema/judgment.json
	JudgmentSchema []byte

	// InquirySchema is ReviewSchema with checks, for reviews that may ask for
	// some before the verdict.
	InquirySchema = bytes.Replace(ReviewSchema, []byte("  \"properties\": {\n"), []byte("  \"properties\": {\n"+checksProperty), 1)

	// ArchitectSchema is AnalysisSchema without insufficient: after an architect there
	// is no further step that could look deeper.
	ArchitectSchema = SchemaWithout(AnalysisSchema, "insufficient")
)

// checksProperty is the property that InquirySchema has beside those of ReviewSchema. It comes
// first, so that a model that asks need not make up the rest.
const checksProperty = `    "checks": {
      "type": "array",
      "description": "Names of checks to run on this commit before you decide; then the rest is not read. Left out in a verdict.",
      "items": {
        "type": "string"
      }
    },
`

// Analysis is the answer of an analyze or architect call. It has tasks, children or
// questions, or a reason why there is nothing to do, or (analyze only) why the request
// needs a deeper look.
type Analysis struct {
	// Type is the kind of change, one lower-case word such as fix.
	Type     string  `json:"type,omitempty"`
	Risk     string  `json:"risk,omitempty"` // low, med or high
	Tasks    []Plan  `json:"tasks"`
	Children []Child `json:"children,omitempty"`
	// Insufficient says why the request takes a deeper look. It excludes all else.
	Insufficient   string     `json:"insufficient,omitempty"`
	Clarifications []Question `json:"clarifications,omitempty"` // then tasks may be empty
	// DependsOn has ids of other intents that must be merged first.
	DependsOn   []string `json:"depends_on,omitempty"`
	NothingToDo string   `json:"nothing_to_do,omitempty"` // why there is no task
	// Observations are remarks beside the request.
	Observations []Observation `json:"observations,omitempty"`
}

// Plan is one task of an Analysis. Names are unique within the Analysis.
type Plan struct {
	// Name identifies the task within the analysis; DependsOn refers to it.
	Name          string   `json:"name"`
	Title         string   `json:"title"`
	Plan          string   `json:"plan,omitempty"`
	Requirements  []string `json:"requirements,omitempty"` // what a review answers, one by one
	RelevantFiles []string `json:"relevant_files,omitempty"`
	Steps         []string `json:"implementation_steps,omitempty"`
	// Context has facts for the implementer that the code does not show.
	Context    string   `json:"context,omitempty"`
	Complexity string   `json:"complexity,omitempty"` // low, med or high
	DependsOn  []string `json:"depends_on,omitempty"` // names
	Item       string   `json:"item,omitempty"`       // recipes only
}

// Question is put to a person, because nothing in the repository answers it.
type Question struct {
	Question string `json:"question"`
	Context  string `json:"context,omitempty"`
	// Suggested has answers that a person can choose from.
	Suggested []string `json:"suggested_answers,omitempty"`
	// Param is set by recipes only: the parameter that the answer becomes.
	Param string `json:"param,omitempty"`
}

// Implementation is the answer of an implement call. The change itself is in the
// checkout's commits.
type Implementation struct {
	Word

	Summary      string        `json:"summary"`
	Observations []Observation `json:"observations,omitempty"`

	// NotNeeded says that nothing had to be changed. Only recipes say it, whose check passed
	// although their command changed nothing; a model is not asked.
	NotNeeded bool `json:"not_needed,omitempty"`
}

// Word holds the words of an agent that makes no change: that it cannot go on, or that
// nothing has to be changed.
type Word struct {
	Blocked     *Blocked `json:"blocked,omitempty"`
	NothingToDo string   `json:"nothing_to_do,omitempty"`
}

// Blocked is why an agent cannot go on, and what a person is asked.
type Blocked struct {
	Reason   string `json:"reason"`
	Question string `json:"question"`
	// Suggested has answers that a person can choose from.
	Suggested []string `json:"suggested_answers,omitempty"`
}

// Review is the answer of a review call.
type Review struct {
	Checks       []string      `json:"checks,omitempty"` // names of checks to run before the verdict
	Requirements []Claim       `json:"requirements,omitempty"`
	Verdict      string        `json:"verdict"` // approved or rejected
	Issues       []string      `json:"issues"`
	Suggestions  []string      `json:"suggestions,omitempty"`
	Observations []Observation `json:"observations,omitempty"`
}

// Observation is a remark about the repository, beside the work that was asked for. It
// is input for reflection.
type Observation struct {
	Content  string     `json:"content"`
	Evidence []Evidence `json:"evidence,omitempty"`
}

// Evidence names a place that supports an observation, finding or pattern.
type Evidence struct {
	Type string `json:"type"` // file, skill, history or decision
	Ref  string `json:"ref"`
}

// ParseAnalysis returns the answer of an analyze or architect call, or a *Failure that
// says which rule it breaks. Task and child names are unique, their dependencies exist
// and form no cycle.
func ParseAnalysis(answer []byte) (forge.Analysis, []forge.Observation, error) {
	var a Analysis
	if err := decode(answer, &a); err != nil {
		return forge.Analysis{}, nil, err
	}
	out := forge.Analysis{
		Type: a.Type, Risk: forge.Risk(a.Risk),
		NothingToDo: strings.TrimSpace(a.NothingToDo), Insufficient: strings.TrimSpace(a.Insufficient),
	}
	if a.Risk != "" && out.Risk.Rank() == 0 {
		return out, nil, invalid("risk is %q; must be low, med or high", a.Risk)
	}
	for i, id := range a.DependsOn {
		parsed, err := forge.ParseIntentID(id)
		if err != nil {
			return out, nil, invalid("depends_on[%d]: %v", i, err)
		}
		out.DependsOn = append(out.DependsOn, parsed)
	}
	for i, q := range a.Clarifications {
		if strings.TrimSpace(q.Question) == "" {
			return out, nil, invalid("clarifications[%d].question is empty", i)
		}
		out.Clarifications = append(out.Clarifications, forge.Clarification{
			Question: q.Question, Context: q.Context, SuggestedAnswers: q.Suggested, Param: q.Param,
		})
	}
	var err error
	if out.Tasks, err = taskPlans(a.Tasks); err != nil {
		return out, nil, err
	}
	if out.Children, err = childPlans(a.Children); err != nil {
		return out, nil, err
	}
	if err := checkOneKind(&out); err != nil {
		return out, nil, err
	}
	obs, err := observations(a.Observations, forge.StepAnalyze)
	return out, obs, err
}

// checkOneKind refuses an analysis that decides nothing, or contradicts itself by
// deciding two things at once.
func checkOneKind(a *forge.Analysis) error {
	asks := len(a.Clarifications) > 0
	switch {
	case len(a.Tasks) == 0 && len(a.Children) == 0 && !asks && a.NothingToDo == "" && a.Insufficient == "":
		return invalid("there is no task, no clarification, and no reason why there is nothing to do")
	case a.Insufficient != "" && (len(a.Tasks) > 0 || len(a.Children) > 0 || asks || a.NothingToDo != ""):
		return invalid("insufficient says that it cannot be planned yet; then there are no tasks, children, clarifications or nothing_to_do")
	case len(a.Children) > 0 && len(a.Tasks) > 0:
		return invalid("there are tasks and children; a request is planned, or taken apart, not both")
	case len(a.Children) > 0 && (asks || a.NothingToDo != ""):
		return invalid("there are children beside clarifications or nothing_to_do; leave children empty")
	}
	return nil
}

// ParseImplementation returns the summary of an implement call, or a *Failure.
func ParseImplementation(answer []byte) (string, []forge.Observation, error) {
	var a Implementation
	if err := decode(answer, &a); err != nil {
		return "", nil, err
	}
	if _, _, err := a.said(); err != nil {
		return "", nil, err
	}
	obs, err := observations(a.Observations, forge.StepImplement)
	return a.Summary, obs, err
}

// ParseWord returns the question of an implement or execute call that cannot go on, or its
// claim that nothing has to be changed, or a *Failure if it says both.
func ParseWord(answer []byte) (blocked *forge.Clarification, nothingToDo string, err error) {
	var a struct{ Word }
	if err := decode(answer, &a); err != nil {
		return nil, "", err
	}
	return a.said()
}

// said checks and converts an agent's word. A block of empty texts, which some models put
// where nothing is meant, is none.
func (w *Word) said() (*forge.Clarification, string, error) {
	nothing := clip(w.NothingToDo, maxReport)
	if w.Blocked == nil {
		return nil, nothing, nil
	}
	q := &forge.Clarification{
		Question: clip(w.Blocked.Question, maxStatement), Context: clip(w.Blocked.Reason, maxReport),
		SuggestedAnswers: clipList(w.Blocked.Suggested),
	}
	switch {
	case q.Question == "" && q.Context == "":
		return nil, nothing, nil
	case nothing != "":
		return nil, "", invalid("blocked and nothing_to_do are both set; say one of them")
	case q.Question == "":
		return nil, "", invalid("blocked.question is empty; ask what a person has to answer so that you can continue")
	case q.Context == "":
		return nil, "", invalid("blocked.reason is empty; say what is missing and what you tried")
	}
	return q, "", nil
}

// NotNeeded reports whether a recipe's answer says that nothing had to be changed.
func NotNeeded(answer []byte) bool {
	var a Implementation
	return decode(answer, &a) == nil && a.NotNeeded
}

// ParseReview returns the verdict, claims, issues and suggestions of a review call, or a
// *Failure if it is malformed. What contradicts itself is no failure: the rules decide on
// it. The caller fills in which change was reviewed.
func ParseReview(answer []byte) (forge.Review, []forge.Observation, error) {
	var a Review
	if err := decode(answer, &a); err != nil {
		return forge.Review{}, nil, err
	}
	out := forge.Review{Verdict: forge.Verdict(a.Verdict), Issues: a.Issues, Suggestions: a.Suggestions}
	if out.Verdict != forge.VerdictApproved && out.Verdict != forge.VerdictRejected {
		return out, nil, invalid("verdict is %q; must be approved or rejected", short(a.Verdict))
	}
	if len(a.Checks) > maxChecks {
		return out, nil, invalid("checks has %d names; name those that matter", len(a.Checks))
	}
	for _, name := range a.Checks {
		out.Asked = append(out.Asked, forge.CheckRun{Name: name})
	}
	var err error
	if out.Claims, err = claims("requirements", a.Requirements); err != nil {
		return out, nil, err
	}
	obs, err := observations(a.Observations, forge.StepReview)
	return out, obs, err
}

// invalid returns a FailInvalidOutput. Its message is shown to the agent that has to
// correct the answer, so it names the field and the rule.
func invalid(format string, args ...any) *Failure {
	return Fail(forge.FailInvalidOutput, "the agent's answer: "+format, args...)
}

// maxAnswer bounds an answer, in bytes.
const maxAnswer = 1 << 20

// decode parses an answer of at most maxAnswer bytes.
func decode(answer []byte, into any) error {
	if len(answer) == 0 {
		return invalid("is missing")
	}
	if len(answer) > maxAnswer {
		return invalid("is %d bytes long; at most %d are allowed", len(answer), maxAnswer)
	}
	if err := json.Unmarshal(answer, into); err != nil {
		return invalid("%v", err)
	}
	return nil
}

// observations checks and converts the observations of an answer; source is the step
// that reported them.
func observations(in []Observation, source forge.Step) ([]forge.Observation, error) {
	var out []forge.Observation
	for i, o := range in {
		at := fmt.Sprintf("observations[%d]", i)
		if strings.TrimSpace(o.Content) == "" {
			return nil, invalid("%s.content is empty", at)
		}
		list, err := evidence(at, o.Evidence)
		if err != nil {
			return nil, err
		}
		out = append(out, forge.Observation{Content: o.Content, Source: source, Evidence: list})
	}
	return out, nil
}

// evidence checks and converts a list of evidence. at is the path of its owner in the
// answer, for the error.
func evidence(at string, in []Evidence) ([]forge.Evidence, error) {
	var out []forge.Evidence
	for i, e := range in {
		switch t := forge.EvidenceType(e.Type); t {
		case forge.EvidenceFile, forge.EvidenceSkill, forge.EvidenceHistory, forge.EvidenceDecision:
			out = append(out, forge.Evidence{Type: t, Ref: e.Ref})
		default:
			return nil, invalid("%s.evidence[%d].type is %q; must be file, skill, history or decision", at, i, e.Type)
		}
	}
	return out, nil
}
