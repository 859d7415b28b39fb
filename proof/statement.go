package proof

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/redact"
)

const (
	// PayloadStatement is the type of envelopes with in-toto statements.
	PayloadStatement = "application/vnd.in-toto+json"
	statementType    = "https://in-toto.io/Statement/v1"
	predicates       = "https://github.com/pfl-forge/pfl-forge/attestation/"
)

// Change is the subject of a statement: the tree of a commit on its parent.
type Change struct {
	// Tree and Parent are git's names of them.
	Tree, Parent string
	// Patch identifies the change from the parent to the tree, whatever it is based
	// on; empty if it was not asked for.
	Patch string
}

// Task says for which task a step was done.
type Task struct {
	// Project is the id of the repository in its installation.
	Project string `json:"project"`
	// Intent is the id of the intent.
	Intent string `json:"intent"`
	// Task is the id of the task within the project.
	Task string `json:"task"`
}

// Predicate is the content of a statement, of a type for each kind of step.
type Predicate interface {
	// kind ends the type of the predicate.
	kind() string
	// namespace is the one in which a key has to be trusted.
	namespace() string
	// of returns the task.
	of() Task
}

// Verify says that the verify commands passed.
type Verify struct {
	// Of is the task.
	Of Task `json:"of"`
	// Definition is the SHA-256 of all commands, as Definition returns it.
	Definition string `json:"definition"`
	// Commands were run, in this order, those that set the checkout up first.
	Commands []Command `json:"commands"`
	// Checks decide criteria of the goal. Each exited as the criterion expects,
	// which can be with another status than 0.
	Checks []Command `json:"checks,omitempty"`
	// Together is the tree that the commands ran on where that is a later one: of the last change
	// of a batch, which this one is in as well. Empty if they ran on the tree of the statement.
	Together string `json:"together,omitempty"`
	// Executor is where they ran; empty if there were none.
	Executor string `json:"executor,omitempty"`
	// Replica is the worker that ran them.
	Replica string `json:"replica"`
}

// Command is a command and what came of it.
type Command struct {
	// Command is its line, cut if it is long.
	Command string `json:"command"`
	// Exit is its exit status.
	Exit int `json:"exit"`
}

// The verdicts of a review.
const (
	VerdictApproved = "approved"
	VerdictRejected = "rejected"
)

// Review says what a review, or the judgment of a goal, made of the change.
type Review struct {
	// Of is the task.
	Of Task `json:"of"`
	// Step is review or judge.
	Step string `json:"step"`
	// Second says that it is of the second reviewer, who was asked after the first had approved.
	Second bool `json:"second,omitempty"`
	// Verdict is approved or rejected; any other word counts as a rejection.
	Verdict string `json:"verdict"`
	// Agent is the back end; empty if none was called.
	Agent string `json:"agent,omitempty"`
	// Model is the model that the back end used, as far as it said so.
	Model string `json:"model,omitempty"`
	// Replica is the worker that reviewed.
	Replica string `json:"replica"`
}

// Plan says which plan the change follows, and which approvals of people it needs.
type Plan struct {
	// Of is the task.
	Of Task `json:"of"`
	// Run is the run of the intent, from 1.
	Run int `json:"run"`
	// Plan is the hash that an approval names.
	Plan string `json:"plan"`
	// Requirement is the SHA-256 of the intent's title and text.
	Requirement string `json:"requirement"`
	// Risk is the effective one: the higher of declared and judged.
	Risk string `json:"risk,omitempty"`
	// Requesters are the people whose words are in the intent.
	Requesters []Requester `json:"requesters,omitempty"`
	// Needs are the approvals that the rules ask for: of the plan, of changes, or of
	// both.
	Needs []Need `json:"needs,omitempty"`
	// Reviews is how many reviewers had to approve the change; 0 stands for one.
	Reviews int `json:"reviews,omitempty"`
	// Policy is the commit of the base branch by whose configuration that is so; empty
	// where one was enough.
	Policy string `json:"policy,omitempty"`
}

// Requester is a person who asked for the intent, or put it into words.
type Requester struct {
	// Name is as the server knows the person, or as a system claims.
	Name string `json:"name"`
	// Proven says that it is not a claim.
	Proven bool `json:"proven,omitempty"`
}

// Need says how many people had to approve one thing.
type Need struct {
	// What is plan or changes.
	What string `json:"what"`
	// Count is how many different people had to.
	Count int `json:"count"`
	// NotRequester says that none of them may have asked for it.
	NotRequester bool `json:"not_requester,omitempty"`
	// Policy is the commit of the base branch whose pfl-forge.yaml says so.
	Policy string `json:"policy,omitempty"`
}

// What an approval is of.
const (
	OfPlan    = "plan"
	OfChanges = "changes"
)

// Approval says that a person approved the plan, or changes of protected paths.
type Approval struct {
	// Of is the task.
	Of Task `json:"of"`
	// What is plan or changes.
	What string `json:"what"`
	// Hash names the plan, or the changes, that the person approved.
	Hash string `json:"hash"`
	// By is the person, as the server or the machine knows them.
	By string `json:"by"`
	// Event is the id of the event with which they did.
	Event string `json:"event,omitempty"`
	// At is when it was decided on, in UTC, as RFC 3339 has it.
	At string `json:"at,omitempty"`
}

func (*Verify) kind() string        { return "verify/v1" }
func (*Verify) namespace() string   { return NamespaceVerify }
func (p *Verify) of() Task          { return p.Of }
func (*Review) kind() string        { return "review/v1" }
func (*Review) namespace() string   { return NamespaceReview }
func (p *Review) of() Task          { return p.Of }
func (*Plan) kind() string          { return "plan/v1" }
func (*Plan) namespace() string     { return NamespacePlan }
func (p *Plan) of() Task            { return p.Of }
func (*Approval) kind() string      { return "approval/v1" }
func (*Approval) namespace() string { return NamespaceApproval }
func (p *Approval) of() Task        { return p.Of }

// statement is an in-toto statement.
type statement struct {
	Type          string          `json:"_type"` //nolint:tagliatelle // of in-toto
	Subject       []subject       `json:"subject"`
	PredicateType string          `json:"predicateType"` //nolint:tagliatelle // of in-toto
	Predicate     json.RawMessage `json:"predicate"`
}

// subject is one subject of a statement, with its digests by their algorithms.
type subject struct {
	Name   string            `json:"name"`
	Digest map[string]string `json:"digest"`
}

// The names and algorithms of subjects.
const (
	subjectTree, digestTree     = "tree", "gitTree"
	subjectParent, digestParent = "parent", "gitCommit"
	subjectPatch, digestPatch   = "patch", "sha256"
)

// State returns a statement about a change in an envelope. The same statement gives
// the same envelope.
func (k *Key) State(about Change, p Predicate) (forge.Envelope, error) {
	body, err := json.Marshal(p)
	if err != nil {
		return "", err
	}
	s := statement{Type: statementType, Subject: subjects(about), PredicateType: predicates + p.kind(), Predicate: body}
	payload, err := json.Marshal(&s)
	if err != nil {
		return "", err
	}
	return k.Seal(PayloadStatement, payload)
}

// subjects returns the subjects of a statement about a change.
func subjects(c Change) []subject {
	list := []subject{
		{subjectTree, map[string]string{digestTree: c.Tree}}, {subjectParent, map[string]string{digestParent: c.Parent}},
	}
	if c.Patch != "" {
		list = append(list, subject{subjectPatch, map[string]string{digestPatch: c.Patch}})
	}
	return list
}

// Statement returns the statement in an envelope.
func (s *Sealed) Statement() (Change, Predicate, error) {
	if s.PayloadType != PayloadStatement {
		return Change{}, nil, fmt.Errorf("the envelope holds %q, and no statement", clip(s.PayloadType))
	}
	var st statement
	if err := exact(s.Payload, &st); err != nil {
		return Change{}, nil, fmt.Errorf("the statement %w", err)
	}
	about, err := changeOf(st.Subject)
	if err == nil && st.Type != statementType {
		err = fmt.Errorf("is of type %q", clip(st.Type))
	}
	if err != nil {
		return Change{}, nil, fmt.Errorf("the statement %w", err)
	}
	for _, p := range []Predicate{&Verify{}, &Review{}, &Plan{}, &Approval{}} {
		if st.PredicateType != predicates+p.kind() {
			continue
		}
		if err := exact(st.Predicate, p); err != nil {
			return Change{}, nil, fmt.Errorf("the statement %s %w", p.kind(), err)
		}
		return about, p, nil
	}
	return Change{}, nil, fmt.Errorf("statements of type %q are not known to this version", clip(st.PredicateType))
}

// changeOf is the inverse of subjects, and takes nothing that it would not return.
func changeOf(list []subject) (Change, error) {
	var c Change
	for i, want := range []struct {
		name, digest string
		into         *string
	}{{subjectTree, digestTree, &c.Tree}, {subjectParent, digestParent, &c.Parent}, {subjectPatch, digestPatch, &c.Patch}} {
		if i < len(list) && list[i].Name == want.name && len(list[i].Digest) == 1 {
			*want.into = list[i].Digest[want.digest]
		}
	}
	if c.Tree == "" || c.Parent == "" || len(list) > 2 && c.Patch == "" || len(list) > 3 {
		return Change{}, errors.New("is not about the tree and the parent of a commit")
	}
	return c, nil
}

// base64Exact decodes the standard encoding, with padding and nothing else.
func base64Exact(s string) ([]byte, error) {
	raw, err := base64.StdEncoding.Strict().DecodeString(s)
	if err == nil && base64.StdEncoding.EncodeToString(raw) != s {
		err = errors.New("has line ends") // which the decoder passes over
	}
	return raw, err
}

// shapes knows the typical forms of secrets. It is never changed.
var shapes redact.Redactor

// Model returns the name of a model as a statement has it: what a back end says of
// it, without what could be a secret.
func Model(name string) string {
	return strings.ToValidUTF8(shapes.Text(name[:min(len(name), maxCommand)]), "")
}

// said returns a command line as a statement has it: without what could be a
// secret, and cut if it is long.
func said(line string) string {
	line = shapes.Text(line)
	return strings.ToValidUTF8(line[:min(len(line), maxCommand)], "")
}

// Definition returns the digest of commands, in their order.
func Definition(lists ...[]string) string {
	text, _ := json.Marshal(lists) //nolint:errchkjson // strings always can be
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

const (
	maxCommand  = 200 // bytes of a command that are said
	maxCommands = 200 // commands that are said
)

// Passed returns commands that ended well, cut where they are long.
func Passed(lists ...[]string) []Command {
	list := []Command{}
	for _, line := range slices.Concat(lists...) {
		if len(list) < maxCommands {
			list = append(list, Command{Command: said(line)})
		}
	}
	return list
}

// Checked returns the runs of checks that passed.
func Checked(runs []forge.CheckRun) (list []Command) {
	for i := range runs[:min(len(runs), maxCommands)] {
		list = append(list, Command{Command: said(runs[i].Command), Exit: runs[i].ExitCode})
	}
	return list
}

// Instead returns envelopes with a statement in place of those that are of the same
// kind, or after them.
func Instead(list []forge.Envelope, next forge.Envelope) []forge.Envelope {
	kind := func(envelope forge.Envelope) string {
		s, err := Unseal(envelope)
		if err != nil {
			return ""
		}
		_, p, err := s.Statement()
		if err != nil {
			return ""
		}
		return p.kind()
	}
	of := kind(next)
	kept := slices.DeleteFunc(slices.Clone(list), func(e forge.Envelope) bool { return kind(e) == of })
	return append(kept, next)
}

// ParseClaim reads a claim of the rules about a plan or an approval, as they write
// it: {"plan": ...} or {"approval": ...}.
func ParseClaim(text string) (Predicate, error) {
	var c struct {
		Plan     *Plan     `json:"plan,omitempty"`
		Approval *Approval `json:"approval,omitempty"`
	}
	if err := exact([]byte(text), &c); err != nil {
		return nil, fmt.Errorf("the claim %w", err)
	}
	switch {
	case c.Plan != nil && c.Approval == nil:
		return c.Plan, nil
	case c.Approval != nil && c.Plan == nil:
		return c.Approval, nil
	}
	return nil, errors.New("the claim is neither of a plan nor of an approval")
}
