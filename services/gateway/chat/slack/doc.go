// Package slack speaks with one workspace of Slack, as an app that is installed there: messages
// of blocks with buttons, by the Web API, and what people press by HTTP or by Socket Mode.
//
// It uses six methods and no library: chat.postMessage, chat.update,
// chat.delete, chat.postEphemeral, conversations.history and views.open,
// besides auth.test and apps.connections.open.
//
// # What is believed
//
//	a payload        only one that was signed (package hooks checks that) or came through the connection that we opened with our own token
//	who acted        user.id together with team.id and user.team_id: in a channel that workspaces share, others press, too
//	a message        is ours if our bot wrote it and it has our metadata, which its text cannot change
//	response_url     is used for commands alone, and only if it is of the host that Slack uses; the token is not sent there
//
// # What is shown
//
// Words of others stand in texts of the type plain_text, in which Slack knows no
// formatting, no links and no mentions, and are escaped as well. The line for notifications
// is escaped, and sent with parse none and without names linked. Nothing is unfurled.
//
// # What fails
//
//	429, or the word ratelimited     forges.ParkedError with the time that Slack says: nothing is sent before it, and nothing waits for it
//	500, or a word for a fault       the same, for half a minute
//	no answer                        the same; whether a message was posted is found out by its mark
//	a token that is not good         an error that a person has to mend; the gateway tries again each minute, and the token is read anew
//	a message that is gone           forges.ErrNotFound
//	a handle that has ended          chat.ErrTyped: Slack lets a dialog be opened for three seconds after a press
//
// # Socket Mode
//
// A [Socket] asks for an address with the token of the app, opens it, and acknowledges
// each envelope when it is stored, and not before. Slack sends what was not acknowledged
// once more. It ends each connection after some hours, with a word or without; another
// one is opened within a second, and after failures with pauses that grow to a minute. A
// press in between is answered by Slack with an error, and can be repeated.
//
// # Limits of Slack that it keeps
//
//	a text of a block     3,000 characters, after escaping
//	a button              75 characters, and 2,000 bytes that it carries
//	a row of buttons      25
//	a channel             a new message a second, which package chat keeps
package slack
