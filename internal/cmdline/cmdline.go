// Package cmdline says how much of a command line people may see who cannot
// read the file that it is in: viewers of pages and of answers by HTTP.
//
// A shell has more ways to write a secret than a filter has rules. So nothing
// is searched for and taken out: a line is shown up to the first word that is
// not plainly harmless, and the rest is left out.
package cmdline

import (
	"slices"
	"strings"
)

// Left stands in place of what is not shown.
const Left = "…"

// secretive are parts of words that name a secret, in small letters. What
// stands behind such a word may be the secret.
var secretive = []string{"token", "secret", "pass", "pwd", "cred", "auth", "key", "bearer", "cookie", "header", "user", "login"}

const (
	// harmless are the characters of a word that means itself to every shell,
	// beside letters and digits of ASCII.
	harmless = "./_-+=:@%"
	// short are letters of flags that take a secret with some program, such as
	// curl, mysql, redis-cli and ldapsearch. With those of glued it may follow
	// the letter at once, or be the word after several such flags.
	short, glued = "abdtpPuUHwW", "pPuUHwW"
)

// Shown returns a command line up to the first word that may hold a secret, and Left in
// place of the rest. Such are words that are quoted or expanded, assignments, of which
// the name is shown, addresses, and what follows a word that could name a secret, or a
// flag that takes one. A secret that is a plain word among plain words is not noticed.
func Shown(line string) string {
	var shown []string
	for rest := strings.TrimSpace(line); rest != ""; {
		word, after, _ := strings.Cut(rest, " ")
		rest = strings.TrimLeft(after, " ")
		part, whole := ofWord(word)
		shown = append(shown, part)
		if !whole {
			break
		}
		if rest != "" && announces(word) {
			shown = append(shown, Left)
			break
		}
	}
	return strings.Join(shown, " ")
}

// ofWord returns the part of a word that is shown, and whether it is the whole word.
func ofWord(word string) (shown string, whole bool) {
	name, value, assigned := strings.Cut(word, "=")
	isFlag := strings.HasPrefix(name, "-")
	switch {
	case !plain(name), address(name):
		return Left, false
	case isFlag && len(name) > 2 && name[1] != '-' && strings.IndexByte(glued, name[1]) >= 0:
		return name[:2] + Left, false
	case namesSecret(name) && strings.Contains(name, ":"):
		return name[:strings.IndexByte(name, ':')+1] + Left, false
	case assigned && (!isFlag || announces(name) || !plain(value) || address(value) || strings.Contains(value, "=") || namesSecret(value)):
		return name + "=" + Left, false
	default:
		return word, true
	}
}

// announces reports whether what follows a word may be a secret: it could name
// one, or is a flag that takes one. Several flags of a letter may be in one word.
func announces(word string) bool {
	last := len(word) - 1
	return namesSecret(word) || last > 0 && word[0] == '-' && word[1] != '-' && !strings.Contains(word, "=") &&
		(last == 1 && strings.IndexByte(short, word[last]) >= 0 || strings.IndexByte(glued, word[last]) >= 0)
}

// namesSecret reports whether a word could name a secret.
func namesSecret(word string) bool {
	word = strings.ToLower(word)
	return slices.ContainsFunc(secretive, func(part string) bool { return strings.Contains(word, part) })
}

// address reports whether a word is an address that may have a password or a
// token in it, in front of its host or in its path.
func address(word string) bool {
	user, _, host := strings.Cut(word, "@")
	return strings.Contains(word, "//") || host && strings.Contains(user, ":")
}

// plain reports whether a word means itself.
func plain(word string) bool {
	return !strings.ContainsFunc(word, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune(harmless, r)
	})
}
