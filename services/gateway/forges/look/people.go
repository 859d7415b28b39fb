package look

import (
	"errors"
	"strconv"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/services/gateway/tokens"
)

// people are those who have accounts at a forge, by the file of tokens. Each
// reason why not is a sentence for the one whose account it is.
type people struct {
	book  *tokens.Book
	forge string // its name in the file
}

// by returns the entry of the person whose account it is.
func (p people) by(account int64) (*tokens.Token, error) {
	t, err := p.book.ByAccount(p.forge, strconv.FormatInt(account, 10))
	if errors.Is(err, tokens.ErrExpired) {
		return nil, errors.New("the entry of this account in the file of tokens has expired")
	}
	return t, err
}

// asks returns the person in whose name an account asks for an intent of a
// project, or why there is none.
func (p people) asks(account int64, project forge.ProjectID) (person, why string) {
	t, err := p.by(account)
	switch {
	case err != nil:
		return "", err.Error()
	case !t.May(project, tokens.Submit):
		return "", t.Barred("the account that asked", tokens.Submit)
	}
	return t.Person, ""
}
