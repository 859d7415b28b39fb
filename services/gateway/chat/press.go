package chat

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/services/gateway/tokens"
)

// Do says what a button does.
type Do string

// The decisions: a closed set.
const (
	Approve Do = "approve"
	Changes Do = "changes"
	Reject  Do = "reject"
	Answer  Do = "answer"
	Retry   Do = "retry"
	Resume  Do = "resume"
	Cancel  Do = "cancel"
)

// deeds has the verb of the API for each decision, and what a person is asked
// to type; nothing where no words belong to it.
var deeds = map[Do]struct {
	verb  tokens.Verb
	label string
	needs bool // the words are needed
}{
	Approve: {verb: tokens.Approve},
	Changes: {tokens.Change, "What should be different", true},
	Reject:  {tokens.Reject, "Reason", false},
	Answer:  {tokens.Answer, "Answer", true},
	Retry:   {tokens.Retry, "Instructions", false},
	Resume:  {verb: tokens.Resume},
	Cancel:  {tokens.Cancel, "Reason", false},
}

// Press is carried by a button: a decision, and the state in which it was offered.
type Press struct {
	Key forge.Key
	Do  Do
	// Seen stands for the state that the message showed, and Plan is the hash that it named.
	Seen, Plan string
	// Index is the place of the question, and Pick that of the suggested
	// answer, from 1; 0: the answer is typed.
	Index, Pick int
}

// typed reports whether a person has to type words before the press is a decision.
func (p *Press) typed() bool { return deeds[p.Do].label != "" && p.Pick == 0 }

// needs reports whether the words of a decision may not be empty.
func (p *Press) needs() bool { return deeds[p.Do].needs }

// carried is a Press as a button carries it: chats bound that to 2,000 bytes.
type carried struct {
	// Project and Intent are the two parts of the key.
	Project string `json:"p"`
	Intent  string `json:"i"`
	Do      Do     `json:"do"`
	// Seen is never empty, so that no button decides about whatever there is.
	Seen string `json:"s"`
	// Plan is there for approve and changes, and for them alone.
	Plan string `json:"h,omitempty"`
	// Index and Pick are there for answer alone.
	Index int `json:"q,omitempty"`
	Pick  int `json:"c,omitempty"`
}

// maxCarried bounds a Press as text, and maxIndex the number of a question or
// of a suggested answer.
const (
	maxCarried = 2000
	maxIndex   = 1000
)

// String returns the press as a button carries it.
func (p *Press) String() string {
	data, err := json.Marshal(carried{string(p.Key.Project), string(p.Key.Intent), p.Do, p.Seen, p.Plan, p.Index, p.Pick})
	if err != nil {
		panic(err) // it has only texts and numbers
	}
	return string(data)
}

// ParsePress reads the text that a button carries. Every part of it is checked:
// it came from outside, and becomes an address of the API.
func ParsePress(data []byte) (*Press, error) {
	if len(data) > maxCarried {
		return nil, fmt.Errorf("a button carries more than %d bytes", maxCarried)
	}
	var c carried
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&c); err != nil || dec.More() {
		return nil, errors.New("this is not one of our buttons")
	}
	project, err := forge.ParseProjectID(c.Project)
	if err != nil {
		return nil, fmt.Errorf("p: %w", err)
	}
	intent, err := forge.ParseIntentID(c.Intent)
	if err != nil {
		return nil, fmt.Errorf("i: %w", err)
	}
	switch _, known := deeds[c.Do]; {
	case !known:
		return nil, errors.New("do: there is no such decision")
	case !isHex(c.Seen) || c.Seen == "":
		return nil, errors.New("s: is no state")
	case !isHex(c.Plan) || (c.Plan == "") == (c.Do == Approve || c.Do == Changes):
		return nil, errors.New("h: is not the hash of a plan or change")
	case c.Index < 0 || c.Index > maxIndex || c.Pick < 0 || c.Pick > maxIndex || c.Do != Answer && (c.Index > 0 || c.Pick > 0):
		return nil, errors.New("q: is no question")
	}
	return &Press{Key: forge.Key{Project: project, Intent: intent}, Do: c.Do, Seen: c.Seen, Plan: c.Plan, Index: c.Index, Pick: c.Pick}, nil
}

// isHex reports whether a text has small hexadecimal digits only.
func isHex(s string) bool {
	return len(s) <= 64 && strings.Trim(s, "0123456789abcdef") == ""
}

// content returns the content of the request for a press, by the intent as it
// is now, in the state that was seen.
//
// The words of a suggested answer are those of the question as it is now: the state that was
// seen has a digest of them, so that they are the same, and a button need not carry them.
func (p *Press) content(now *document.Detail, words string) (any, error) {
	switch p.Do {
	case Approve: // the hash that was shown, and not the one that there is
		return map[string]any{"plan": p.Plan}, nil
	case Changes:
		return map[string]any{"hash": p.Plan, "words": words}, nil
	case Answer:
		if p.Index >= len(now.Questions) {
			return nil, errors.New("there is no such question any more")
		}
		q := &now.Questions[p.Index]
		if p.Pick > len(q.SuggestedAnswers) {
			return nil, errors.New("there is no such answer any more")
		}
		if p.Pick > 0 {
			words = q.SuggestedAnswers[p.Pick-1]
		}
		return map[string]any{"index": p.Index, "question": q.Question, "answer": words}, nil
	case Retry:
		return map[string]any{"instructions": words}, nil
	case Resume:
		return map[string]any{}, nil
	default:
		return map[string]any{"reason": words}, nil
	}
}
