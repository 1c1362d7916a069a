// Package literature holds the published figures as data, with where they are from, and the networks of the zoo that
// stand for the paper's. A figure that is not published is missing here too.
package literature
