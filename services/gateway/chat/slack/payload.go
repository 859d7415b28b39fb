package slack

import (
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/url"

	"github.com/pfl-forge/pfl-forge/bus/deliveries"
	"github.com/pfl-forge/pfl-forge/services/gateway/chat"
)

// payload holds the fields of an interaction that are read.
//
// It has more, such as names of people and the whole message that was pressed. Nothing
// of that is read: names change hands, and the message is asked for where it counts.
type payload struct {
	// Type is block_actions for a button, and view_submission for a dialog;
	// others are not asked for.
	Type string `json:"type"`
	// Team is the workspace in which it was done. It is null for an app that a
	// whole organisation has installed, which is refused.
	Team struct {
		ID string `json:"id"`
	} `json:"team"`
	// User is the person who acted, with their own workspace, which differs
	// where workspaces share a channel.
	User struct {
		ID     string `json:"id"`
		TeamID string `json:"team_id"`
	} `json:"user"`
	// Trigger lets one dialog be opened within three seconds.
	Trigger string `json:"trigger_id"`
	// Container is the message of a button.
	Container struct {
		Type    string `json:"type"`
		Message string `json:"message_ts"`
		Channel string `json:"channel_id"`
	} `json:"container"`
	// Actions has one entry for a button.
	Actions []struct {
		Type  string `json:"type"`
		ID    string `json:"action_id"`
		Block string `json:"block_id"`
		Value string `json:"value"`
	} `json:"actions"`
	// View is the dialog that was sent.
	View struct {
		Callback string `json:"callback_id"`
		// Private was set when the dialog was opened, by us: its person cannot change it.
		Private string `json:"private_metadata"`
		// State has the fields by their block and action.
		State struct {
			Values map[string]map[string]struct {
				Value string `json:"value"`
			} `json:"values"`
		} `json:"state"`
	} `json:"view"`
}

// command holds the fields of a command of Socket Mode; by HTTP they are those of a form.
type command struct {
	Command string `json:"command"`
	Text    string `json:"text"`
	Team    string `json:"team_id"`
	User    string `json:"user_id"`
	Channel string `json:"channel_id"`
	Trigger string `json:"trigger_id"`
	Reply   string `json:"response_url"`
}

// maxToken bounds handles of Slack that are sent back, in bytes.
const maxToken = 2000

// Read returns the act in a delivery of Slack: a form by HTTP, or the payload
// of an envelope by Socket Mode.
func (c *Client) Read(d *deliveries.Delivery) (*chat.Act, error) {
	if d.Event == chat.Socket {
		return readJSON(d.Body, c.cfg.Alone)
	}
	media, _, _ := mime.ParseMediaType(d.ContentType)
	if media != "application/x-www-form-urlencoded" { // an event of the Events API, of which none is asked for
		return nil, chat.ErrNothing
	}
	form, err := url.ParseQuery(string(d.Body))
	if err != nil {
		return nil, errors.New("the form of Slack cannot be read")
	}
	if text := form["payload"]; len(text) == 1 {
		return readJSON([]byte(text[0]), c.cfg.Alone)
	}
	if form.Get("command") == "" {
		return nil, chat.ErrNothing
	}
	return (&command{
		Command: form.Get("command"), Text: form.Get("text"), Team: form.Get("team_id"), User: form.Get("user_id"), Channel: form.Get("channel_id"),
		Trigger: form.Get("trigger_id"), Reply: form.Get("response_url"),
	}).act()
}

// readJSON reads an interaction or a command. Where ours is the only workspace,
// a person of whom Slack does not say the workspace is of that one.
func readJSON(data []byte, alone bool) (*chat.Act, error) {
	var p payload
	if err := json.Unmarshal(data, &p); err != nil {
		return nil, errors.New("the payload of Slack cannot be read")
	}
	switch p.Type {
	case "block_actions":
		return p.pressed(alone)
	case "view_submission":
		return p.typed(alone)
	case "":
		var cmd command
		if err := json.Unmarshal(data, &cmd); err != nil || cmd.Command == "" {
			return nil, errors.New("the payload of Slack is neither an interaction nor a command")
		}
		return cmd.act()
	}
	return nil, chat.ErrNothing // a shortcut, or a dialog that was closed
}

// act returns the act of a command. A command of a person of another workspace has its own team_id.
func (c *command) act() (*chat.Act, error) {
	a := &chat.Act{
		Account: c.User, Home: c.Team, Team: c.Team, Channel: c.Channel, Typed: true, Words: c.Text, Trigger: c.Trigger, Reply: c.Reply,
	}
	return a, check(a)
}

// pressed returns the act of a button.
func (p *payload) pressed(alone bool) (*chat.Act, error) {
	if len(p.Actions) != 1 || p.Actions[0].Type != "button" || p.Actions[0].Block != "decide" || p.Actions[0].ID == "link" {
		return nil, chat.ErrNothing // the button with a link sends an interaction as well
	}
	press, err := chat.ParsePress([]byte(p.Actions[0].Value))
	if err != nil {
		return nil, err
	}
	a := p.act(press, alone)
	a.Channel, a.Message = p.Container.Channel, p.Container.Message
	return a, check(a)
}

// typed returns the act of a dialog.
func (p *payload) typed(alone bool) (*chat.Act, error) {
	if p.View.Callback != "decide" {
		return nil, chat.ErrNothing
	}
	from, press, err := carriedBy(p.View.Private)
	if err != nil {
		return nil, err
	}
	a := p.act(press, alone)
	a.Channel, a.Message = from.Channel, from.Message
	a.Typed, a.Words = true, p.View.State.Values[fieldBlock][fieldAction].Value
	return a, check(a)
}

// act returns an act without its place.
func (p *payload) act(press *chat.Press, alone bool) *chat.Act {
	home := p.User.TeamID
	if home == "" && alone { // of a dialog Slack tells it in some workspaces only
		home = p.Team.ID
	}
	return &chat.Act{Account: p.User.ID, Home: home, Team: p.Team.ID, Press: press, Trigger: p.Trigger}
}

// check returns an error for an act whose ids are none, or whose handles are too long.
// They are sent to Slack, and stand in the journal. Ids of people, teams and channels
// begin with letters that say which of them they are, so that none can stand for another.
func check(a *chat.Act) error {
	_, wrong := instant(a.Message)
	switch {
	case !isID(a.Account, "UW"), a.Home != "" && !isID(a.Home, "TE"), !isID(a.Team, "TE"):
		return errors.New("the payload of Slack does not say who acted")
	case !isID(a.Channel, "CGD"), a.Message != "" && wrong != nil, a.Press != nil && a.Message == "":
		return errors.New("the payload of Slack does not say where it was done")
	case len(a.Trigger) > maxToken || len(a.Reply) > maxToken:
		return errors.New("the payload of Slack has a handle that is too long")
	}
	return nil
}

// place is where a dialog was opened from.
type place struct {
	Channel string `json:"channel"`
	Message string `json:"message"`
	Press   string `json:"press"`
}

// carry returns the text that a dialog carries: Slack keeps it beside the
// dialog, and does not show it.
func carry(channel, message string, p *chat.Press) string {
	data, err := json.Marshal(place{channel, message, p.String()})
	if err != nil {
		panic(err) // it has only texts
	}
	return string(data)
}

// carriedBy reads the text that a dialog carries.
func carriedBy(text string) (*place, *chat.Press, error) {
	var from place
	if err := json.Unmarshal([]byte(text), &from); err != nil {
		return nil, nil, errors.New("the dialog is none of ours")
	}
	press, err := chat.ParsePress([]byte(from.Press))
	if err != nil {
		return nil, nil, fmt.Errorf("the dialog is none of ours: %w", err)
	}
	return &from, press, nil
}
