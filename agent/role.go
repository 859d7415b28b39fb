package agent

import (
	"slices"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/config"
)

// Role is the kind of work that a call does. Each has an entry in roles.
type Role string

// The roles. Each role's answer is the type named after its work: RoleAnalyze answers
// with an Analysis, RoleReview with a Review, and so on.
const (
	// RoleAnalyze plans the tasks of an intent, or asks.
	RoleAnalyze Role = "analyze"
	// RoleArchitect analyzes again, deeper, after analyze could not.
	RoleArchitect Role = "architect"
	// RoleIntake accepts a goal with its criteria, or asks.
	RoleIntake Role = "intake"
	// RoleImplement makes the change of one task.
	RoleImplement Role = "implement"
	// RoleExecute works one iteration towards a goal.
	RoleExecute Role = "execute"
	// RoleReview judges a change, without hearing its author.
	RoleReview Role = "review"
	// RoleJudge judges whether a goal is reached.
	RoleJudge Role = "judge"
	// RoleReflect proposes new intents from observations.
	RoleReflect Role = "reflect"
	// RoleSummarize sums up an iteration.
	RoleSummarize Role = "summarize"
	// RoleAbstract makes skills from patterns.
	RoleAbstract Role = "abstract"
	// RoleAudit looks for problems of the whole repository.
	RoleAudit Role = "audit"
	// RoleObserve looks for patterns in the project's history.
	RoleObserve Role = "observe"
)

// ModelClass selects one of the project's models: it is a key of models in
// pfl-forge.yaml.
type ModelClass string

// The classes of models.
const (
	ModelTriageDeep ModelClass = "triage_deep"
	ModelDefault    ModelClass = "default" // class complex is used instead for a task of high complexity
)

// ToolSet selects the tools of a role.
type ToolSet string

// The sets of tools.
const (
	// ToolsNone: the prompt has all that the role needs.
	ToolsNone ToolSet = "none"
	// ToolsRead is triage_tools of pfl-forge.yaml, without those that write.
	ToolsRead ToolSet = "read"
	// ToolsWrite is worker_tools of pfl-forge.yaml.
	ToolsWrite ToolSet = "write"
)

// RoleSpec has the settings that all calls of a role share.
type RoleSpec struct {
	Role Role
	// Step is the step of the flow that makes such calls.
	Step forge.Step
	// Model is the class of models that its calls use.
	Model ModelClass
	Tools ToolSet
	// Judges says that its calls decide on a change. What the checkout says of how to
	// work there is part of that change, so it does not instruct them.
	Judges bool
	// Schema is the JSON schema of the answer; nil if any text will do.
	Schema []byte
	// Check returns a *Failure for an answer that fits the schema but breaks a rule
	// that the schema cannot express. Nil if Schema is nil.
	Check func(answer []byte) error
}

// ReadOnly reports whether calls of the role must not change the checkout.
func (s *RoleSpec) ReadOnly() bool { return s.Tools != ToolsWrite }

// ToolsOf returns the tools that a project gives to calls of the role.
func (s *RoleSpec) ToolsOf(p *config.Project) []string {
	switch s.Tools {
	case ToolsRead:
		if s.Judges && slices.Contains(p.TriageTools, "Grep") {
			// Grep finds files by name, too, and what a tool's description
			// costs is paid by every request.
			return slices.DeleteFunc(slices.Clone(p.TriageTools), func(t string) bool { return t == "Glob" })
		}
		return p.TriageTools
	case ToolsWrite:
		return p.WorkerTools
	case ToolsNone:
	}
	return nil
}

// roles defines every role. A new role needs an entry here, a Parse function, a schema,
// and an answer in package conformance.
var roles = []RoleSpec{
	{Role: RoleAnalyze, Step: forge.StepAnalyze, Model: ModelTriageDeep, Tools: ToolsRead, Schema: AnalysisSchema, Check: checkAnalysis},
	{Role: RoleArchitect, Step: forge.StepArchitect, Model: ModelTriageDeep, Tools: ToolsRead, Schema: ArchitectSchema, Check: checkArchitect},
	{Role: RoleIntake, Step: forge.StepIntake, Model: ModelTriageDeep, Tools: ToolsRead, Schema: IntakeSchema, Check: checkIntake},
	{Role: RoleImplement, Step: forge.StepImplement, Model: ModelDefault, Tools: ToolsWrite, Schema: ImplementationSchema, Check: checkImplementation},
	{Role: RoleExecute, Step: forge.StepExecute, Model: ModelDefault, Tools: ToolsWrite, Schema: ExecutionSchema, Check: checkExecution},
	{Role: RoleReview, Step: forge.StepReview, Model: ModelDefault, Tools: ToolsRead, Judges: true, Schema: ReviewSchema, Check: checkReview},
	{Role: RoleJudge, Step: forge.StepJudge, Model: ModelDefault, Tools: ToolsNone, Judges: true, Schema: JudgmentSchema, Check: checkJudgment},
	{Role: RoleReflect, Step: forge.StepReflect, Model: ModelDefault, Tools: ToolsRead, Schema: ReflectionSchema, Check: checkReflection},
	{Role: RoleSummarize, Step: forge.StepSummarize, Model: ModelDefault, Tools: ToolsNone, Schema: SummarizationSchema, Check: checkSummarization},
	{Role: RoleAbstract, Step: forge.StepAbstract, Model: ModelDefault, Tools: ToolsRead, Schema: AbstractionSchema, Check: checkAbstraction},
	{Role: RoleAudit, Step: forge.StepAudit, Model: ModelTriageDeep, Tools: ToolsRead, Schema: AuditSchema, Check: checkAudit},
	{Role: RoleObserve, Step: forge.StepObserve, Model: ModelTriageDeep, Tools: ToolsRead, Schema: ObservedSchema, Check: checkObserved},
}

// Roles returns all roles in the order of their definition.
func Roles() []Role {
	var out []Role
	for i := range roles {
		out = append(out, roles[i].Role)
	}
	return out
}

// Spec returns the settings of a role. For an unknown role it returns one without
// tools, schema and check.
func Spec(role Role) RoleSpec {
	i := slices.IndexFunc(roles, func(s RoleSpec) bool { return s.Role == role })
	if i < 0 {
		return RoleSpec{Role: role, Step: forge.StepReflect, Model: ModelDefault, Tools: ToolsNone}
	}
	return roles[i]
}

// checkAnalysis, and the functions below it, refuse an answer that the role's
// parser does not take, so that the agent is asked for it once more.
func checkAnalysis(answer []byte) error {
	_, _, err := ParseAnalysis(answer)
	return err
}

// checkArchitect also refuses insufficient, which only analyze may answer.
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

// checkIntake does not know the person's own criteria; the caller passes them to
// ParseIntake again.
func checkIntake(answer []byte) error {
	_, _, err := ParseIntake(answer, nil)
	return err
}

func checkSummarization(answer []byte) error {
	_, err := ParseSummarization(answer)
	return err
}

func checkJudgment(answer []byte) error {
	_, err := ParseJudgment(answer)
	return err
}
