// Package decide is the side of a runner: it takes the events that machines decide on, and
// makes the effects of their decisions happen.
//
// Events come from people and systems (stream FORGE_INTENTS), from timers and other
// machines (FORGE_WAKES), and from workers, whose results are stored nowhere but in the
// journal. [Events.Consume] gives all of them to one handler. [Effects.Dispatch] stores
// commands, timers and events to other machines; it can be repeated at any time.
package decide
