package slacktest

import (
	"strings"
	"unicode/utf8"
)

// block is one of a message, with the fields that package slack uses.
type block struct {
	Type     string    `json:"type"`
	Text     *text     `json:"text"`
	Elements []element `json:"elements"`
}

// text is an object of text, of which there are two types.
type text struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// element is one of a row; package slack has buttons alone.
type element struct {
	Type   string `json:"type"`
	Action string `json:"action_id"`
	Text   text   `json:"text"`
	Value  string `json:"value"`
	URL    string `json:"url"`
}

// Bounds of Slack.
const (
	maxSection  = 3000
	maxButton   = 75
	maxValue    = 2000
	maxElements = 25
)

// read returns the texts and buttons of blocks, or the word for what Slack does
// not take. Texts with markup are not taken by this fake: package slack has none.
func read(blocks []block) (shown string, buttons []Button, word string) {
	actions := map[string]bool{}
	for _, b := range blocks {
		if b.Text != nil {
			if b.Text.Type != "plain_text" || utf8.RuneCountInString(b.Text.Text) > maxSection || b.Text.Text == "" || strings.ContainsAny(b.Text.Text, "<>") {
				return "", nil, "invalid_blocks"
			}
			shown += b.Text.Text + "\n"
		}
		if len(b.Elements) > maxElements {
			return "", nil, "invalid_blocks"
		}
		for _, e := range b.Elements {
			if e.Type != "button" || e.Text.Type != "plain_text" || utf8.RuneCountInString(e.Text.Text) > maxButton || e.Text.Text == "" ||
				len(e.Value) > maxValue || actions[e.Action] {
				return "", nil, "invalid_blocks"
			}
			actions[e.Action] = true
			buttons = append(buttons, Button{e.Action, e.Text.Text, e.Value})
		}
	}
	return shown, buttons, ""
}
