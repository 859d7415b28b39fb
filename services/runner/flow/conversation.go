package flow

import "github.com/pfl-forge/pfl-forge"

// conversation is an agent's session. Its name is in the journal before any
// process knows it.
type conversation struct {
	number int
	id     string
	begun  bool // some attempt was in it
}

// begin starts another conversation about a step.
func (s *Intent) begin(c *conversation, task forge.TaskID, step forge.Step) {
	c.number++
	c.begun = false
	c.id = ""
	if s.intent.Recipe == "" {
		c.id = forge.NewSessionID(s.key, s.intent.CreatedAt, task, step, c.number)
	}
}

// talkOf is the conversation that a step of a task, or with none of the whole
// intent, is in.
func (s *Intent) talkOf(t *task, step forge.Step) *conversation {
	switch {
	case t == nil:
		return &s.talk
	case step == forge.StepReview || step == forge.StepJudge:
		return &t.reviewTalk
	case step == forge.StepSummarize:
		return &t.loop.talk
	default:
		return &t.talk
	}
}

func taskID(t *task) forge.TaskID {
	if t == nil {
		return ""
	}
	return t.ID
}

// heardOf notes that an attempt was in the conversation.
func (c *conversation) heardOf(session string) {
	if c.id != "" && session == c.id {
		c.begun = true
	}
}

// in gives a command its conversation.
func (c *conversation) in(cmd *forge.Command) { cmd.Session, cmd.Resume = c.id, c.begun }
