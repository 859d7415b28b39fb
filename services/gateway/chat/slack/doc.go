// Package slack speaks with one workspace of Slack, as an app that is installed there: messages of blocks with buttons, by the Web API, and
// what people press by HTTP or by Socket Mode.
//
// It uses six methods and no library: chat.postMessage, chat.update, chat.delete, chat.postEphemeral, conversations.history and views.open,
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
// Words of others stand in texts of the type plain_text, in which Slack knows no formatting, no links and no mentions, and are escaped as
// well. The line for notifications is escaped, and sent with parse none and without names linked. Nothing is unfurled.
package slack
