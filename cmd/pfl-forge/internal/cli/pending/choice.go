package pending

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/document"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/render"
)

// Choice is one thing that a person can do about an intent. There is one of each, below;
// whatever offers choices (the inbox, the live view, lists of commands, commands that are
// completed) reads it from there.
type Choice struct {
	Key  rune   // chooses it at a terminal
	Name string // what it is called on a terminal's line of keys
	Done string // what has become of the intent once it is applied, such as "approved"
	Help string // says in a line what it does, such as "approve exactly this plan"

	GoesOn bool // once it is applied, a run has to go on with the intent

	// Fits reports whether it is offered for an intent as that is now.
	Fits func(*forge.Summary) bool

	// Needs returns the input that it asks a person for first, where they can type.
	Needs func(*forge.Summary) Need

	// Sure returns the question whether they mean it, where they can only press a key. It
	// is empty if they need not be asked.
	Sure func(*forge.Summary) string

	// typed returns it as a person types it in a shell, in one or more ways, and nothing
	// where it is not to be suggested.
	typed func(*forge.Summary) []string

	// message returns the message that is sent.
	message func(Said) forge.Message
}

// Said is a person's input to a choice, which reads only the fields that it has a use for.
type Said struct {
	Text      string             // a reason to reject, pause or cancel; instructions to retry; an answer; what has to be different
	BudgetUSD float64            // to retry: what the intent may cost in all from now on; 0: as before
	Plan      string             // to approve, or to ask for changes: the hash of what they saw; empty: whatever it is
	Adopt     string             // to retry: the commit of another one, on the branch of a pull request, that becomes the change
	Task      forge.TaskID       // to pause, resume, cancel or ask for changes: only this task; empty: the whole intent
	Question  *document.Question // to answer: which one
}

// Need describes the input that a choice asks a person for before it is sent.
type Need struct {
	Kind   NeedKind
	Prompt string                          // asks for it; of NeedText and NeedYes
	Parse  func(text string) (Said, error) // parses the line that was typed; of NeedText
}

// NeedKind is a way to ask for input.
type NeedKind int

// The ways to ask for input.
const (
	NeedNothing NeedKind = iota // it is sent at once
	NeedText                    // a line of text, which may be empty
	NeedYes                     // a yes
	NeedAnswers                 // answers to the questions of the intent, one at a time
)

// Approve lets an intent go on with exactly the plan, or be analyzed with
// exactly the text, that the person saw.
var Approve = &Choice{
	Key: 'a', Name: "approve", Done: "approved", GoesOn: true,
	Help:  "approve exactly this plan, this change of protected paths, or that this text is analyzed",
	Fits:  waits(forge.WaitingApproval),
	Needs: nothing,
	Sure: func(s *forge.Summary) string {
		if document.AsksFirst(s) {
			return fmt.Sprintf("Let %s be analyzed (text %s)? Its plan is another question.", named(s), s.Plan)
		}
		return fmt.Sprintf("Approve %s (%s, %s, plan %s)?", named(s), render.Risk(s.Risk), render.Count(s.TaskCount, "task"), s.Plan)
	},
	typed: func(s *forge.Summary) []string {
		line := "pfl-forge approve " + string(s.Key.Intent)
		if s.Plan != "" {
			line += " --plan " + s.Plan
		}
		return []string{line}
	},
	message: func(said Said) forge.Message { return &forge.Approve{Plan: said.Plan} },
}

// RequestChanges has exactly the plan, or the changes, that the person saw made
// again, with their words. It is not offered of a text that waits before it is
// analyzed, of which nothing is made yet, nor where reviewers disagree: there the
// question has to be read first, and the command takes the commit that it names.
var RequestChanges = &Choice{
	Key: 'w', Name: "want changes", Done: "is made again", GoesOn: true,
	Help: "ask for changes to this plan, or this change: it is made again with your words, and waits again",
	Fits: func(s *forge.Summary) bool { return s.Waiting == forge.WaitingApproval && !document.AsksFirst(s) },
	Needs: func(*forge.Summary) Need {
		return Need{NeedText, "What has to be different (Ctrl-D to cancel): ", parseWish}
	},
	Sure: func(s *forge.Summary) string { return "Ask for changes of " + named(s) + "?" },
	typed: func(s *forge.Summary) []string {
		if s.Plan == "" {
			return nil
		}
		return []string{"pfl-forge request-changes " + string(s.Key.Intent) + " --hash " + s.Plan + " '...'"}
	},
	message: func(said Said) forge.Message {
		return &forge.RequestChanges{Hash: said.Plan, Words: said.Text, Task: said.Task}
	},
}

// Answer answers the questions of an intent. It is sent once for each question.
var Answer = &Choice{
	Key: 'e', Name: "answer", Done: "answered", GoesOn: true,
	Help:  "answer its questions, one at a time",
	Fits:  waits(forge.WaitingClarification),
	Needs: func(*forge.Summary) Need { return Need{Kind: NeedAnswers} },
	Sure:  unasked,
	typed: func(s *forge.Summary) []string {
		return []string{"pfl-forge answer " + string(s.Key.Intent) + " 1 '...'"}
	},
	message: func(said Said) forge.Message {
		return &forge.Answer{Index: said.Question.Number - 1, Question: said.Question.Question, Answer: said.Text}
	},
}

// Retry runs an intent again that failed, or that waits for files, for money or
// for the base branch.
var Retry = &Choice{
	Key: 't', Name: "retry", Done: "retried", GoesOn: true,
	Help:  "run again what failed or waits; asks for instructions or a budget first",
	Fits:  waits(forge.WaitingFailed, forge.WaitingDirty, forge.WaitingBudget, forge.WaitingBase, forge.WaitingPull),
	Needs: retryNeeds,
	Sure:  func(s *forge.Summary) string { return "Retry " + named(s) + "?" },
	typed: retryTyped,
	message: func(said Said) forge.Message {
		return &forge.Retry{Instructions: said.Text, BudgetUSD: said.BudgetUSD, Adopt: said.Adopt}
	},
}

// Resume goes on with an intent, a task or a project that is paused.
var Resume = &Choice{
	Key: 'u', Name: "resume", Done: "resumed", GoesOn: true,
	Help:  "continue paused intents",
	Fits:  waits(forge.WaitingPaused),
	Needs: nothing,
	Sure:  unasked,
	typed: func(s *forge.Summary) []string {
		if s.Reason == forge.ProjectPaused || forge.Outside(s.Reason) {
			return []string{"pfl-forge resume --all"}
		}
		return []string{"pfl-forge resume " + string(s.Key.Intent)}
	},
	message: func(said Said) forge.Message { return &forge.Resume{Task: said.Task} },
}

// Reject ends an intent because it is not wanted.
var Reject = &Choice{
	Key: 'r', Name: "reject", Done: "rejected",
	Help: "reject it for good; asks for a reason first",
	Fits: waits(forge.WaitingApproval, forge.WaitingClarification, forge.WaitingFailed),
	Needs: func(*forge.Summary) Need {
		return Need{NeedText, "Reason (Ctrl-D to cancel): ", func(text string) (Said, error) { return Said{Text: text}, nil }}
	},
	Sure: func(s *forge.Summary) string { return "Reject " + named(s) + "?" },
	typed: func(s *forge.Summary) []string {
		if s.Waiting == forge.WaitingFailed {
			return nil // cancelling is suggested
		}
		return []string{"pfl-forge reject " + string(s.Key.Intent) + " --reason '...'"}
	},
	message: func(said Said) forge.Message { return &forge.Reject{Reason: said.Text} },
}

// Cancel stops an intent, a task or everything in a project for good.
var Cancel = &Choice{
	Key: 'c', Name: "cancel", Done: "cancelled",
	Help: "cancel it for good; merged changes stay; asks whether you are sure",
	Fits: Waits,
	Needs: func(s *forge.Summary) Need {
		return Need{Kind: NeedYes, Prompt: "Cancel " + named(s) + "? Merged changes stay."}
	},
	Sure: func(s *forge.Summary) string { return "Cancel " + named(s) + "?" },
	typed: func(s *forge.Summary) []string {
		if s.Waiting == forge.WaitingApproval || s.Waiting == forge.WaitingClarification {
			return nil // rejecting is suggested
		}
		return []string{noun(s) + "cancel " + string(s.Key.Intent)}
	},
	message: func(said Said) forge.Message {
		return &forge.Cancel{Reason: said.Text, Task: said.Task}
	},
}

// Pause stops the agents of an intent, a task or a project until it is resumed. It settles
// nothing that waits for a person, and so Choices never returns it.
var Pause = &Choice{
	Key: 'p', Name: "pause", Done: "paused",
	Help:  "stop its agents and keep their work",
	Fits:  func(s *forge.Summary) bool { return !s.Status.Ended() && s.Waiting != forge.WaitingPaused },
	Needs: nothing,
	Sure:  func(s *forge.Summary) string { return "Pause " + named(s) + "?" },
	typed: func(*forge.Summary) []string { return nil },
	message: func(said Said) forge.Message {
		return &forge.Pause{Reason: said.Text, Task: said.Task}
	},
}

// Choices returns the choices about an intent that waits for a person, the one that settles
// it first. It is empty for one that does not wait.
func Choices(s *forge.Summary) []*Choice {
	var list []*Choice
	for _, c := range []*Choice{Approve, RequestChanges, Answer, Retry, Resume, Reject, Cancel} {
		if c.Fits(s) {
			list = append(list, c)
		}
	}
	return list
}

// Event returns the event by which a choice is sent to an intent's, or a project's, state
// machine.
func (c *Choice) Event(to forge.Key, said Said) forge.Event {
	return forge.Event{To: to, Message: c.message(said)}
}

// Waits reports whether an intent waits for a person.
func Waits(s *forge.Summary) bool { return s.Waiting != "" }

// waits returns a function that reports whether an intent waits for one of some things.
func waits(list ...forge.Waiting) func(*forge.Summary) bool {
	return func(s *forge.Summary) bool { return slices.Contains(list, s.Waiting) }
}

// named returns an intent's title in quotes, as a question to a person names it; its id if it
// has no title.
func named(s *forge.Summary) string {
	if title := kit.Safe(s.Title); title != "" {
		return `"` + title + `"`
	}
	return string(s.Key.Intent)
}

func nothing(*forge.Summary) Need { return Need{Kind: NeedNothing} }

func unasked(*forge.Summary) string { return "" }

// retryNeeds asks for money where that is missing, and for instructions elsewhere.
func retryNeeds(s *forge.Summary) Need {
	if s.Waiting == forge.WaitingBudget {
		return Need{NeedText, "New total budget in US dollars (Enter for the project's default, Ctrl-D to cancel): ", parseBudget}
	}
	return Need{
		NeedText, "Instructions, if any (Ctrl-D to cancel): ",
		func(text string) (Said, error) { return Said{Text: text}, nil },
	}
}

// parseWish reads the words of a wish for changes.
func parseWish(text string) (Said, error) {
	if strings.TrimSpace(text) == "" {
		return Said{}, errors.New("say in words what has to be different")
	}
	return Said{Text: text}, nil
}

// parseBudget reads a budget in US dollars; nothing leaves it as it is.
func parseBudget(text string) (Said, error) {
	if text == "" {
		return Said{}, nil
	}
	usd, err := strconv.ParseFloat(strings.TrimPrefix(text, "$"), 64)
	if err != nil || !(usd > 0) || usd > 1e6 {
		return Said{}, fmt.Errorf("%q is not an amount of US dollars", text)
	}
	return Said{BudgetUSD: usd}, nil
}
