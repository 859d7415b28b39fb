package rest

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/pfl-forge/pfl-forge/services/gateway/intake"
)

// MaxPages is how many pages of a list are read.
const MaxPages = 40

// Path returns the path of a repository, and of something in it.
func Path(name string, parts ...any) (string, error) {
	if err := intake.CheckRepository(name); err != nil {
		return "", fmt.Errorf("repository %.100q: %w", name, err)
	}
	path := []string{"/repos", name}
	for _, p := range parts {
		path = append(path, url.PathEscape(fmt.Sprint(p)))
	}
	return strings.Join(path, "/"), nil
}

// Pages calls read with the number of each page until one is empty: a server may have
// smaller pages than are asked for, and Gitea leaves out of a full page of a timeline what
// we may not see. More pages than the bound are an error: a part of a list would look like
// all of it.
func Pages(read func(n int) (int, error)) error {
	for n := 1; n <= MaxPages; n++ {
		got, err := read(n)
		if err != nil || got == 0 {
			return err
		}
	}
	return fmt.Errorf("there are more than %d pages", MaxPages)
}

// List reads the pages of a list until take has enough, or the header Link of an answer names no
// other one. path has a query that asks for size things on a page; T has the form of a page, and
// take returns how many things it has.
func List[T any](ctx context.Context, c *Client, path string, size int, take func(page T) (n int, enough bool)) error {
	for n := 1; n <= MaxPages; n++ {
		var list T
		got, err := c.ask(ctx, http.MethodGet, fmt.Sprintf("%s&page=%d", path, n), nil, &list)
		if err != nil {
			return err
		}
		// The address of the next page is not followed: it is the same one with the next number,
		// and the token goes to no other. A page that is full may have got another one behind it
		// since it was kept: that alone does not change it.
		count, enough := take(list)
		if enough || count < size && !strings.Contains(got.header.Get("Link"), `rel="next"`) {
			return nil
		}
	}
	return fmt.Errorf("there are more than %d pages", MaxPages)
}
