// Package chat has people in a chat see which intents wait for them, and decide
// there: approve, ask for changes, reject, answer, run again, resume and cancel.
//
// A [Watcher] keeps one message for each intent and channel, and edits it in place; it takes what
// people press or type to the API in their name, with every check that a request by HTTP has. It
// decides nothing, and remembers nothing that the chat and the journal do not have. Package slack
// is a [Interactive], with two ways; package webhook is a [Chat] that is told and never answers.
//
// # What is believed
//
//	a message      is found again by the mark of our own account in it, and by nothing that its text says
//	a press        carries the intent and the state that its person saw. It is a hint: the intent is asked for anew, and if the state is
//	               another one, nothing is done, its person is told so, and the message is brought up to date
//	a person       is known by the ids of the team and the account, which the operator's file has; never by a name
//	a role         is that of the person's entry of the file of tokens, at the moment of the act
//
// # One act, several gateways
//
// What comes in is stored before it is answered, in the stream of deliveries. Every gateway reads
// that stream. Beside a delivery there are claims in it: who stores the claim may act for [lease];
// if there is no mark that it is done by then, the next claim decides who tries again. A wish has
// an id that follows from the delivery, so that one that was handed on twice is decided once.
//
//	killed before the claim        another gateway, or the next one, claims it
//	killed after the claim         the same, when the lease has ended
//	killed after the decision      the wish is known by its id: it is decided once, and the mark is stored now
//	two gateways post at once      the claim of a message lets one post. If that one is cut off and the post arrives late, there are two:
//	                               each gateway finds both by their marks, and the younger one is removed by its own account
//	the answer to a post is lost   the channel is looked through before the next post, and the message is found
//
// # What a person is told, alone
//
//	an account that the operator's file does not have    how to get in, and that nothing was done
//	a channel that is not one of the settings            that nothing is decided from there
//	a role that is missing, or a rule against it         the words of the API
//	a message that is not how it is any more             that nothing was done, the last decision, and the words that they had typed
//	a dialog that could not be opened in time            to press again
//	a decision that counts                               nothing: the message in the channel says how it goes on
//
// # What is news
//
// A message begins with a state of the kinds that the channel wants. From then on it is edited
// whatever the state is, so that no one has to look whether it is still true. An edit tells no
// one, so a further state of those kinds is said in one line below the message as well, once.
// What ended is told without a message of its own only if the channel wants that, and for an
// hour after it ended: a gateway that was away for longer does not fill a channel with the past.
//
// # What it does not do
//
// It has no list of its own of who may do what, no rules, and no second way to the
// journal. It does not open a plan or a change in the chat: a message has their
// titles and a link to the page with all of it. Budgets are raised in the console.
//
// # What it costs
//
// A change of an intent is one question to the runner, and one edit if the text
// is another one. A sweep reads what is new in each channel, and asks for the
// intents that wait. A channel gets at most one new message a second; what is
// limited is left until the time that the chat says, and nothing waits for it.
package chat
