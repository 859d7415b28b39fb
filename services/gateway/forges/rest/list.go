package rest

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge/services/gateway/forges"
	"github.com/pfl-forge/pfl-forge/services/gateway/intake"
)

const (
	// MaxPages is how many pages of a list are read, of the largest pages that a forge has.
	MaxPages = 40
	// maxThings is how many things that are where pages are smaller.
	maxThings = MaxPages * 100
)

// errLarge says that an answer has more bytes than are read of one.
var errLarge = errors.New("the answer has more")

// Shrink calls read with the size of a page, and as long as an answer has more bytes than are
// read, again from the start with half of it: everybody can write texts at a forge, and whoever
// writes long ones must not keep us from seeing those of others. One thing alone that is too
// large remains an error.
func Shrink(size int, read func(size int) error) error {
	for ; ; size /= 2 {
		if err := read(size); size <= 1 || !errors.Is(err, errLarge) {
			return err
		}
	}
}

// most returns how many pages of a size are read.
func most(size int) int { return max(MaxPages, maxThings/max(size, 1)) }

// Path returns the path of a repository, and of something in it.
func Path(name string, parts ...any) (string, error) {
	if err := intake.CheckRepository(name); err != nil {
		return "", fmt.Errorf("repository %.100q: %w", name, err)
	}
	return Join("/repos/"+name, parts...), nil
}

// File returns a file that a forge answers with as JSON, in base64. One that is larger than an
// answer may be is as little a file as a folder: both are there, and will not be another time.
func File(ctx context.Context, c *Client, path string) ([]byte, error) {
	var raw json.RawMessage
	if err := c.Call(ctx, http.MethodGet, path, nil, &raw); errors.Is(err, errLarge) {
		return nil, forges.ErrNoFile
	} else if err != nil {
		return nil, err
	}
	return readFile(raw)
}

// readFile reads an answer with a file. A folder is a list, and what is no file
// has another type; GitLab says none.
func readFile(raw []byte) ([]byte, error) {
	var f struct {
		Type     string `json:"type"`
		Encoding string `json:"encoding"`
		Content  string `json:"content"`
	}
	if err := json.Unmarshal(raw, &f); err != nil || f.Type != "" && f.Type != "file" || f.Encoding != "base64" {
		return nil, forges.ErrNoFile
	}
	data, err := base64.StdEncoding.DecodeString(f.Content) // which takes the line ends in it
	if err != nil || len(data) > forges.MaxFile {
		return nil, forges.ErrNoFile
	}
	return data, nil
}

// Join returns the path of something below another path, each part of it escaped.
func Join(path string, parts ...any) string {
	for _, p := range parts {
		path += "/" + url.PathEscape(fmt.Sprint(p))
	}
	return path
}

// Pages calls read with the number of each page of a size until one is empty: a server may
// have smaller pages than are asked for, and Gitea leaves out of a full page of a timeline what
// we may not see. More pages than the bound are an error: a part of a list would look like
// all of it.
func Pages(size int, read func(n int) (int, error)) error {
	for n := 1; n <= most(size); n++ {
		got, err := read(n)
		if err != nil || got == 0 {
			return err
		}
	}
	return fmt.Errorf("there are more than %d pages", most(size))
}

// List reads the pages of a list until take has enough, or the header Link of an answer names no
// other one. path has a query that asks for size things on a page; T has the form of a page, and
// take returns how many things it has.
func List[T any](ctx context.Context, c *Client, path string, size int, take func(page T) (n int, enough bool)) error {
	for n := 1; n <= most(size); n++ {
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
	return fmt.Errorf("there are more than %d pages", most(size))
}

// Sorted returns changes with the oldest first, each once: one that changes
// while pages are read may be in two of them.
func Sorted(list []forges.Change) []forges.Change {
	slices.SortStableFunc(list, func(a, b forges.Change) int { return a.At.Compare(b.At) })
	last := map[int64]int{}
	for i, c := range list {
		last[c.Number] = i
	}
	var out []forges.Change
	for i, c := range list {
		if last[c.Number] == i {
			out = append(out, c)
		}
	}
	return out
}
