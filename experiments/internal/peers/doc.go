// Package peers puts the numbers that other tools' own tests hold beside ours: ResNet-18 on machines of ZigZag, a gated
// layer on systems of Stream, a layer of GPT-3 on a machine of AccelForge. The machines are their files as
// dsasched convert writes them.
package peers
