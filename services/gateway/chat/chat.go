package chat

import (
	"context"
	"errors"
	"log/slog"
	"time"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/changes"
	"github.com/pfl-forge/pfl-forge/bus/deliveries"
	"github.com/pfl-forge/pfl-forge/bus/requests"
	"github.com/pfl-forge/pfl-forge/notify"
	"github.com/pfl-forge/pfl-forge/services/gateway/api"
	"github.com/pfl-forge/pfl-forge/services/gateway/tokens"
)

// Chat is a back end that can be told. Its errors are those of package forges:
// a ParkedError says when to try again.
type Chat interface {
	// Post posts a notice as a new message, and returns the id of that message;
	// empty where a chat gives none.
	Post(ctx context.Context, channel string, n *Notice) (id string, err error)
}

// Interactive is a chat whose messages can be edited, and whose people can act.
// It is safe for concurrent use.
type Interactive interface {
	Chat
	// Introduce finds out who we are there. It is called before all others.
	Introduce(ctx context.Context) error
	// Find returns the messages of our own account with a mark that were posted
	// since a time, the oldest first.
	Find(ctx context.Context, channel string, since time.Time) ([]Posted, error)
	// Edit has a message say a notice.
	Edit(ctx context.Context, channel, id string, n *Notice) error
	// Reply says a notice in one line below a message, where the people who follow it are told.
	Reply(ctx context.Context, channel, id string, n *Notice) error
	// Remove takes a message of ours away.
	Remove(ctx context.Context, channel, id string) error
	// Read returns the act in a delivery. Error: ErrNothing for one that asks for nothing.
	Read(d *deliveries.Delivery) (*Act, error)
	// Ask has a person type the words of a press.
	Ask(ctx context.Context, a *Act, p *Press, label string) error
	// Whisper shows a line to the person who acted, and to no other.
	Whisper(ctx context.Context, a *Act, text string) error
}

// ErrNothing says that a delivery asks for nothing, such as a dialog that was closed.
var ErrNothing = errors.New("this asks for nothing")

// ErrTyped says that a person can be asked for words only right after they
// pressed, and that it is too late now.
var ErrTyped = errors.New("it is too late to ask for your words")

// Posted is a message of ours in a channel.
type Posted struct {
	// ID is the chat's, and At when it was posted.
	ID string
	At time.Time
	// Mark names its intent, and the state that it shows.
	Mark Mark
}

// Mark is remembered by each message of ours, out of people's sight: with it,
// no gateway needs a store of its own.
type Mark struct {
	// Key is the intent, Seen the state that the message shows, and Text stands
	// for all of its text.
	Key        forge.Key
	Seen, Text string
	// Open is false once nothing more is expected of the intent.
	Open bool
}

// Act is one deed of one person in a chat, such as a pressed button. Its sender has
// signed it, so the ids are true; whether the person may do it is not known yet.
type Act struct {
	// Account is the person's, and Home the team of the account, empty where
	// the chat does not say it. Team is where it was done.
	Account, Home, Team string
	// Channel and Message are where it was done; Message is empty for a command.
	Channel, Message string
	// Press is that of the button, or the one for which words were typed; nil for a command.
	Press *Press
	// Typed says that the person has typed Words, for a press or as a command.
	Typed bool
	Words string
	// Trigger and Reply are the chat's own handles by which the person can be
	// answered; they end soon.
	Trigger, Reply string
}

// Channel says what a channel is told.
type Channel struct {
	// ID is the chat's; empty where a chat has one channel alone.
	ID string
	// Projects are those whose intents are told there, and decided.
	Projects []forge.ProjectID
	// On are the kinds of notices that begin a message; one that is there is
	// kept up to date whatever comes.
	On []notify.Kind
	// Submit is the project for which a command asks for a change; empty: commands are refused.
	Submit forge.ProjectID
}

// Config has all that a Watcher works with.
type Config struct {
	// Name is that of the chat in the settings, and the name under which claims are stored.
	Name string
	// Gateway is the account on the bus.
	Gateway string
	// Chat is told; one that is a Interactive is listened to as well.
	Chat Chat
	// Team is the only one whose accounts are known.
	Team string
	// Channels are those that are told.
	Channels []Channel
	// Hooks are the names of the hooks through which the chat tells what people do.
	Hooks []string
	// Link begins the addresses of the console; empty: messages have no link.
	Link string
	// API decides, and Tokens says whose an account of the team is and what they may.
	API    *api.API
	Tokens *tokens.Book
	// Submissions, Deliveries and Changes are doors of the bus.
	Submissions *requests.Submissions
	Deliveries  *deliveries.Stream
	Changes     *changes.Stream
	// Words makes the words of others safe to leave.
	Words Words
	// Log is told of all that a person may have to mend.
	Log *slog.Logger
	// Every is the time between sweeps, Debounce how long a change waits for others,
	// Pace the least time between two posts in one channel, and Lease how long a claim
	// keeps others away. Zero values are 5 minutes, 2 seconds, a second and 30 seconds.
	Every, Debounce, Pace, Lease time.Duration
	// Now is the clock; nil for that of the machine.
	Now func() time.Time
}

// projects returns the projects of all channels, each once.
func (c *Config) projects() (list []forge.ProjectID) {
	seen := map[forge.ProjectID]bool{}
	for _, ch := range c.Channels {
		for _, p := range ch.Projects {
			if !seen[p] {
				seen[p] = true
				list = append(list, p)
			}
		}
	}
	return list
}
