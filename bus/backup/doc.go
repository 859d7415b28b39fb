// Package backup copies what a server keeps of an installation into a folder,
// while work goes on, and puts it back into an empty server.
//
//	<folder>/
//	  manifest.json             what there is: written last, so a folder without it is no backup
//	  FORGE_JOURNAL/
//	    backup.json             configuration and state of the stream
//	    stream.arc.s2           its messages and consumers, as the server has packed them
//	  ...                       the same of each stream
//
// WriteInto makes such folders in one that is for them, named by their times,
// and removes the oldest:
//
//	<parent>/
//	  .pfl-forge-backups.lock   locked while one is made
//	  20261130T031700Z/         a backup, whose manifest has that name
//	  .20261130T041700Z-123/    one that is being made, or removed
//
// The folders of the streams are those of the nats command line, which can
// restore each of them, too.
//
// Streams are copied one after the other, and each is a moment of its own. Their order makes one
// whole of them: a request is copied before the journals that it may have gone into, so it is in
// one of them or in both, and what comes twice is known by its id; changes are copied before the
// journals that they are made from, so the missing ones are made again; intents' journals are
// copied before those of projects. What a project decided after that, on the word of an intent
// that is not in the backup, is left out when it is restored: the intent says it again.
//
// The streams of commands and timers are not copied. A runner makes them from the journals. Nor
// are leases: no replica of before has the right to go on.
package backup
