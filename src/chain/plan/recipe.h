#pragma once

// What a dialect's kind runs, as data: a recipe is a list of statements, one a line, nested by two
// blanks. It knows nothing but the params file's roles and its own variables.
//
//   let NAME = TEXT        a variable of the innermost loop or call; hides a role of the same name
//   set NAME = TEXT        a variable of the whole plan
//   for NAME in TEXT       for each `|` part of TEXT; NAME# is its number, from 0
//   if COND / elif / else  COND: A == B, A != B, A has B, absent A, given A; `and` before `or`
//   next / stop            with the loop's next part; with nothing more
//   define NAME / call NAME
//   gpus NAME              reads a gpu_list entry: NAME becomes its GPUs; NAME.sort is cpu, one,
//                          many or machines; NAME.ips and NAME.nodes are the machines;
//                          NAME.visible and NAME.device what trains, NAME.first, NAME.first_device
//                          and NAME.number what follows on one of them; NAME.servers tells
//                          Parameter Server runs apart
//   edit A => B            in the values of all roles
//   rewrite A => B         in the commands of all stages that follow
//   take PREFIX            the roles that begin so, under their names without it
//   warn TEXT / nothing TEXT   to be told; why the plan may be empty
//   refuse TEXT            why there is no plan
//   folder TEXT            where results and logs go; `results NAME` names the log of status lines
//   run KIND NAME          a stage, with lines below it:
//     command TEXT         its words
//     log TEXT             its log, as it is; `own_log TEXT`: a number is added to what is taken
//     in FOLDER · env NAME=VALUE · makes PATH · reads PATH
//     as LABEL · after LABELS     what it needs of earlier stages (`forget LABEL` ends a label)
//     device TEXT · visible TEXT  "cpu" or "gpu 0,1"; CUDA_VISIBLE_DEVICES, "-" for none at all
//     stdin FILE · same_as LABEL  what it reads; the stage whose log must say the same
//     expands                     words with `*` become the newest file that they match
//     hosts TEXT · program TEXT · module TEXT
//     speed                       writes the record of the training before; where the script is
//                                 not there, assay does so itself, by the words behind it
//     quiet                       the status line does not show the log
//     compares TEXT               with the stage labelled `dynamic`, if TEXT is full precision
//
// In TEXT, {NAME} is a variable or a role's value, {NAME.key} a role's key, and
//   {arg NAME}, {arg NAME = TEXT}   KEY=VALUE, or a blank where key or value is null or nothing
//   {mode NAME}                     what a mode=N list says for this mode
//   {by_mode NAME}                  the same; that it says nothing is told
//   {launch NAME FLAG}              what starts a training on NAME, which `gpus` has read, and a
//                                   blank; nothing on one device
//   {dynamic NAME}                  the user's --dynamic, for the weights NAME
//   {quote NAME} {bars NAME}        one word of a command; a list of what blanks part
//   {nth NAME INDEX}                the part of a `|` list that the variable INDEX numbers
//   {field NAME KEY}                VALUE of KEY:VALUE in a `;` list
//   {part NAME SIGN INDEX}          a part of NAME between SIGNs
//   {swap NAME A B} {cut NAME A}    with its first A as B; what stands before its first A
//   {word NAME INDEX}               a word of a command
//   {"TEXT"}                        TEXT itself, braces and all
//   {dirname NAME} {basename NAME} {digits NAME} {raw NAME}
//   {cards NAME} {ids NAME}         of N1C8: 8; 0,1,…,7
//   {times NAME NAME} {plus NAME N} a product, a sum
//   {rest NAME A}                   what stands after its first A; all of it where there is none
//   {environment NAME TEXT}         of ours, or else TEXT

#include "base/result.h"
#include "chain/plan/plan_builder.h"

namespace assay::chain::plan {

// Plans by the recipe of the file's layout.
Status plan_recipe(PlanBuilder& builder);

}  // namespace assay::chain::plan
