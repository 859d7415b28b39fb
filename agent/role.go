package agent

import (
	"slices"

	"github.com/pfl-forge/pfl-forge"
)

// Role is the kind of work that a call does.
type Role string

// The roles.
const (
	RoleAnalyze   Role = "analyze"   // plans the tasks of an intent, or asks
	RoleArchitect Role = "architect" // analyzes what analyze could not
	RoleIntake    Role = "intake"    // takes on a goal, or asks
	RoleImplement Role = "implement" // makes the change of one task
	RoleExecute   Role = "execute"   // works one iteration towards a goal
	RoleReview    Role = "review"    // judges a change
	RoleJudge     Role = "judge"     // judges whether a goal is reached
	RoleReflect   Role = "reflect"   // makes new intents of what was noticed
	RoleSummarize Role = "summarize" // sums up an iteration
	RoleAbstract  Role = "abstract"  // makes a skill of what was noticed
	RoleAudit     Role = "audit"     // looks for what is wrong
	RoleObserve   Role = "observe"   // looks at what happened
)

// ModelClass is which of the project's models a role works with: a key of models in
// pfl-forge.yaml.
type ModelClass string

// The classes of models.
const (
	ModelTriageDeep ModelClass = "triage_deep"
	ModelDefault    ModelClass = "default" // complex, where a task is of high complexity
)

// ToolSet is which tools a role has.
type ToolSet string

// The sets of tools.
const (
	ToolsNone  ToolSet = "none"  // what it needs is in the prompt
	ToolsRead  ToolSet = "read"  // triage_tools in pfl-forge.yaml, of which those that write are left out
	ToolsWrite ToolSet = "write" // worker_tools
)

// RoleSpec is what every call of a role has in common.
type RoleSpec struct {
	Role   Role
	Step   forge.Step // that makes such calls
	Model  ModelClass
	Tools  ToolSet
	Schema []byte                    // of its answer; nil if any text will do
	Check  func(answer []byte) error // says what is wrong with an answer that fits the schema; nil with a nil Schema
}

// ReadOnly reports whether calls of the role must not change the checkout.
func (s *RoleSpec) ReadOnly() bool { return s.Tools != ToolsWrite }

// roles is the one place that says what a role is.
var roles = []RoleSpec{
	{Role: RoleAnalyze, Step: forge.StepAnalyze, Model: ModelTriageDeep, Tools: ToolsRead, Schema: AnalysisSchema, Check: checkAnalysis},
	{Role: RoleArchitect, Step: forge.StepArchitect, Model: ModelTriageDeep, Tools: ToolsRead, Schema: ArchitectSchema, Check: checkArchitect},
	{Role: RoleIntake, Step: forge.StepIntake, Model: ModelTriageDeep, Tools: ToolsRead, Schema: IntakeSchema, Check: checkIntake},
	{Role: RoleImplement, Step: forge.StepImplement, Model: ModelDefault, Tools: ToolsWrite, Schema: ImplementationSchema, Check: checkImplementation},
	{Role: RoleExecute, Step: forge.StepExecute, Model: ModelDefault, Tools: ToolsWrite, Schema: ExecutionSchema, Check: checkExecution},
	{Role: RoleReview, Step: forge.StepReview, Model: ModelDefault, Tools: ToolsRead, Schema: ReviewSchema, Check: checkReview},
	{Role: RoleJudge, Step: forge.StepJudge, Model: ModelDefault, Tools: ToolsNone, Schema: JudgmentSchema, Check: checkJudgment},
	{Role: RoleReflect, Step: forge.StepReflect, Model: ModelDefault, Tools: ToolsRead, Schema: ReflectionSchema, Check: checkReflection},
	{Role: RoleSummarize, Step: forge.StepSummarize, Model: ModelDefault, Tools: ToolsNone, Schema: SummarizationSchema, Check: checkSummarization},
	{Role: RoleAbstract, Step: forge.StepAbstract, Model: ModelDefault, Tools: ToolsRead, Schema: AbstractionSchema, Check: checkAbstraction},
	{Role: RoleAudit, Step: forge.StepAudit, Model: ModelTriageDeep, Tools: ToolsRead, Schema: AuditSchema, Check: checkAudit},
	{Role: RoleObserve, Step: forge.StepObserve, Model: ModelTriageDeep, Tools: ToolsRead, Schema: ObservedSchema, Check: checkObserved},
}

// Roles returns all roles.
func Roles() []Role {
	var out []Role
	for i := range roles {
		out = append(out, roles[i].Role)
	}
	return out
}

// Spec returns what calls of the role have in common; for what is no role, it may
// read and has no schema.
func Spec(role Role) RoleSpec {
	i := slices.IndexFunc(roles, func(s RoleSpec) bool { return s.Role == role })
	if i < 0 {
		return RoleSpec{Role: role, Step: forge.StepReflect, Model: ModelDefault, Tools: ToolsNone}
	}
	return roles[i]
}

func checkAnalysis(answer []byte) error {
	_, _, err := ParseAnalysis(answer)
	return err
}

func checkArchitect(answer []byte) error {
	a, _, err := ParseAnalysis(answer)
	if err == nil && a.Insufficient != "" {
		return invalid("nobody looks deeper after you; plan it, take it apart, or ask")
	}
	return err
}

func checkAudit(answer []byte) error {
	_, err := ParseAudit(answer)
	return err
}

func checkObserved(answer []byte) error {
	_, _, err := ParseObserved(answer)
	return err
}

func checkAbstraction(answer []byte) error {
	_, _, err := ParseAbstraction(answer)
	return err
}

func checkReflection(answer []byte) error {
	_, _, err := ParseReflection(answer)
	return err
}

func checkImplementation(answer []byte) error {
	_, _, err := ParseImplementation(answer)
	return err
}

func checkReview(answer []byte) error {
	_, _, err := ParseReview(answer)
	return err
}

func checkIntake(answer []byte) error {
	_, _, err := ParseIntake(answer, nil)
	return err
}

func checkSummarization(answer []byte) error {
	_, err := ParseSummarization(answer)
	return err
}

// checkJudgment does not know the criteria: who calls the judge checks that they are
// evaluated.
func checkJudgment(answer []byte) error {
	_, _, err := decodeJudgment(answer)
	return err
}
