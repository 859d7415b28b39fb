package slack

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/pfl-forge/pfl-forge/services/gateway/chat"
)

// Bounds of Slack, in characters after escaping, and how many elements a row of buttons may have.
const (
	maxSection = 2900
	// maxSections bounds the sections of the lines: Slack bounds all of a message as well.
	maxSections = 3
	maxLine     = 1000
	maxButton   = 70
	maxConfirm  = 280
	maxRow      = 25
)

// escapes are the three characters that begin something in Slack's texts.
var escapes = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// escape returns a text as Slack shows it and nothing else: no mention, no link
// and no date can begin in it.
func escape(s string) string { return escapes.Replace(s) }

// fit returns a text escaped and cut to a number of characters. An escape is not cut in two.
func fit(s string, most int) string {
	var b strings.Builder
	n := 0
	for _, r := range s {
		one := escape(string(r))
		if n += utf8.RuneCountInString(one); n > most-1 {
			return b.String() + "…"
		}
		b.WriteString(one)
	}
	return b.String()
}

// plain returns an object of text without markup.
func plain(s string, most int) map[string]any {
	return map[string]any{"type": "plain_text", "text": fit(s, most), "emoji": false}
}

// section returns a block of plain text.
func section(text string) map[string]any {
	return map[string]any{"type": "section", "text": plain(text, maxSection)}
}

// sections returns blocks of plain text with the lines, each in one block as a whole
// if that has room for it. Those for which there is no room at all are the last ones.
func sections(lines []string) (blocks []any) {
	var part []string
	room := maxSection
	for i, l := range lines {
		size := utf8.RuneCountInString(escape(l)) + 1
		if len(part) > 0 && size >= room {
			if len(blocks) == maxSections-1 {
				part = append(part, lines[i:]...) // it is cut, with a mark
				break
			}
			blocks, part, room = append(blocks, section(strings.Join(part, "\n"))), nil, maxSection
		}
		part, room = append(part, l), room-size
	}
	if len(part) > 0 {
		blocks = append(blocks, section(strings.Join(part, "\n")))
	}
	return blocks
}

// line returns a message of one line.
func line(channel, text string) map[string]any {
	return map[string]any{
		"channel": channel, "text": fit(text, maxLine), "mrkdwn": false, "parse": "none", "link_names": false, "unfurl_links": false, "unfurl_media": false,
	}
}

// message returns the message of a notice: what it is, how it is, and what can be done.
//
// The text beside the blocks is for notifications and for readers of a screen; Slack shows the
// blocks in its place. It names no one, since the channel was chosen for those who are to know.
func message(channel string, n *chat.Notice) map[string]any {
	m := line(channel, n.Text())
	head := fmt.Sprintf("%s/%s %s\n%s", n.Key.Project, n.Key.Intent, n.State, n.Title)
	blocks := []any{section(head)}
	blocks = append(blocks, sections(slices.Concat(n.Hidden, n.Lines))...)
	var row []any
	for i := range n.Buttons {
		if len(row) == maxRow-1 {
			break
		}
		row = append(row, button(i, &n.Buttons[i]))
	}
	if n.Link != "" {
		row = append(row, map[string]any{"type": "button", "action_id": "link", "text": plain("Open in the console", maxButton), "url": n.Link})
	}
	if len(row) > 0 {
		blocks = append(blocks, map[string]any{"type": "actions", "block_id": "decide", "elements": row})
	}
	mark := n.Mark()
	m["blocks"] = blocks
	m["metadata"] = map[string]any{"event_type": eventType, "event_payload": markJSON{
		Project: string(mark.Key.Project), Intent: string(mark.Key.Intent), Seen: mark.Seen, Text: mark.Text, Open: mark.Open,
	}}
	return m
}

// button returns the i-th button of a message.
func button(i int, b *chat.Button) map[string]any {
	e := map[string]any{"type": "button", "action_id": fmt.Sprintf("decide-%d", i), "text": plain(b.Label, maxButton), "value": b.Press.String()}
	switch {
	case b.Good:
		e["style"] = "primary"
	case b.Bad:
		e["style"] = "danger"
	}
	if b.Confirm != "" {
		e["confirm"] = map[string]any{
			"title": plain(b.Label, maxButton), "text": plain(b.Confirm, maxConfirm), "confirm": plain("Yes", maxButton), "deny": plain("No", maxButton),
		}
	}
	return e
}

// The ids of the dialog's field.
const (
	fieldBlock  = "words"
	fieldAction = "typed"
	// maxTyped bounds how much a person can type: Slack allows no more.
	maxTyped = 3000
)

// dialog returns the dialog in which a person types the words of a press. It
// carries the press and the place of its message.
func dialog(a *chat.Act, p *chat.Press, label string) map[string]any {
	return map[string]any{
		"type": "modal", "callback_id": "decide", "private_metadata": carry(a.Channel, a.Message, p),
		"title": plain("pfl-forge", 24), "submit": plain("Send", 24), "close": plain("Back", 24),
		"blocks": []any{
			section(fmt.Sprintf("%s/%s", p.Key.Project, p.Key.Intent)),
			map[string]any{
				"type": "input", "block_id": fieldBlock, "optional": p.Do != chat.Answer && p.Do != chat.Changes, "label": plain(label, maxButton),
				"element": map[string]any{"type": "plain_text_input", "action_id": fieldAction, "multiline": true, "max_length": maxTyped},
			},
		},
	}
}
