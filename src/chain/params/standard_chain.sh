#!/bin/bash
# The chain of a train_infer params file whose project has no script of its own: trains, evaluates, exports and
# infers, as TIPC's development documents describe.
#
# usage: bash standard_chain.sh FILE MODE [GPU] [cpu]
#   GPU  CUDA_VISIBLE_DEVICES of whole_infer
#   cpu  trains and infers on the CPU, whatever FILE says
#
# Values are split into words with their quotes. Nothing in FILE is executed or expanded.

file=$1 mode=$2 gpu=$3 device=$4
declare -A key value

# The lines of FILE: ROLE KIND KEYS. assay checks FILE by this table, too (standard.h). `+`: the long layout of 51
# lines has it, the short one of 32 lines has not. `?`: it may be absent. `!`: only files of some suites have it. KEYS:
# `=a|b` are the keys; `~a|b` are words that usual keys hold, since any key may stand there.
layout() {
  cat <<'LAYOUT'
section train_params
model_name text =model_name
python program =python
gpu_list gpus =gpu_list
?use_gpu words:True,False,cpu,gpu,xpu,npu,null ~gpu|device
+autocast words:null,fp32,fp16,bf16,amp,True,False ~cast|amp|precision
epochs numbers ~epoch|iter|step
save_dir any ~output|out|save|dir
train_batch numbers ~batch|bs
pretrained any ~pretrain|weight|checkpoint|init
train_model_name any =train_model_name
images any ~data|img|image|input
+train_extra any ~null
trainer trainers =trainer
norm_train command =norm_train|amp_train|fleet_train|pact_train|fpgm_train|distill_train|to_static_train
+pact_train maybe =pact_train|quant_train|quant_export
+fpgm_train maybe =fpgm_train|prune_train|fpgm_export
+distill_train maybe =distill_train
+train_1 maybe ~amp_train|fleet_train|to_static_train
+train_2 maybe ~amp_train|fleet_train|to_static_train
section eval_params
eval maybe =eval
+eval_extra any ~null
section infer_params
export_dir any ~save|output|out|infer
export_weights any ~pretrain|weight|checkpoint|model
norm_export maybe =norm_export
+quant_export maybe =quant_export|pact_export
+fpgm_export maybe =fpgm_export|prune_export
+distill_export maybe =distill_export
+export1 maybe =export1|kl_quant
+export2 maybe =export2
+inference_dir any =inference_dir|pretrained_model_url|inference_model_url
infer_model any =infer_model|train_model
infer_export maybe =infer_export
+infer_quant any =infer_quant
inference command =inference
infer_use_gpu words:True,False,cpu,gpu,xpu,npu ~gpu|device
+mkldnn words:True,False,null ~mkldnn|onednn
+threads counts ~thread
infer_batch counts ~batch|bs
+tensorrt words:True,False,null ~trt|tensorrt
+precision words:fp32,fp16,bf16,int8,True,False,null ~precision|fp16
infer_model_key any ~model
infer_images any ~img|image|data|input
+save_log any ~log
benchmark any ~benchmark
+infer_extra any ~null
!more any =null
section? infer_benchmark_params
random_infer_input any =random_infer_input
section? train_benchmark_params
bench_batch counts =batch_size
fp_items words:fp32,fp16,bf16,amp =fp_items
bench_epoch numbers =epoch
profiler any ~profiler
flags settings =flags
section? to_static_train_benchmark_params
to_static any =to_static_train
LAYOUT
}

lines_of() {  # a section's lines
  sed 's/\r$//' "$file" | awk -v name="$1" '/^[^a-z]*===/ { gsub(/[^a-z_]/, ""); on = $0 == name; next }
    on && NF && !/^[[:space:]]*#+[[:space:]]*$/ { gsub(/^[[:space:]]+|[[:space:]]+$/, ""); print }'
}

read_file() {
  local role rest line long section at lines
  [[ $(lines_of train_params | wc -l) -gt 15 ]] && long=1
  while read -r role rest; do
    if [[ $role == section* ]]; then
      mapfile -t lines < <(lines_of "$rest")
      at=0
    elif [[ $at -lt ${#lines[@]} && ($long || $role != +*) ]]; then
      line=${lines[at]} role=${role#[+!]}
      [[ $line == *:* ]] || line+=:
      [[ $role == \?* && ! ${line%%:*} =~ ${rest##*[ =~]} ]] && continue
      role=${role#\?} at=$((at + 1))
      key[$role]=${line%%:*} value[$role]=${line#*:}
      key[$role]=${key[$role]%"${key[$role]##*[! ]}"} value[$role]=${value[$role]#"${value[$role]%%[! ]*}"}
    fi
  done < <(layout)
}

is_null() { [[ -z ${value[$1]} || ${value[$1]} == null ]]; }

list() { tr '|' '\n' <<< "${value[$1]-null}"; }  # one value a line; null if the layout has no such line

# ` key=value` of a role, or nothing if one of them is null. $2: the value, by default the role's own.
arg() {
  local given=${2-${value[$1]}}
  [[ -z ${key[$1]} || ${key[$1]} == null || -z $given || $given == null ]] || printf ' %s' "${key[$1]}=$given"
}

by_mode() {  # the value of `mode=value|mode=value`, or a plain value
  local part
  [[ ${value[$1]} == *=* ]] || { echo "${value[$1]}"; return; }
  for part in $(list "$1"); do [[ $part == "$mode="* ]] && echo "${part#*=}" && return; done
}

# Runs a command. $1: CUDA_VISIBLE_DEVICES, `keep` leaves it as it is; $2: name of its log.
run() {
  local visible=$1 log=$out/logs/$2.log command=$3 status=failed words
  mapfile -d '' -t words < <(xargs -r printf '%s\0' <<< "$command")
  [[ $visible == keep ]] || export CUDA_VISIBLE_DEVICES=$visible
  "${words[@]}" > "$log" 2>&1 && status=successfully
  [[ $visible == keep ]] || unset CUDA_VISIBLE_DEVICES
  printf '\033[33m Run %s with command - %s - %s - %s \033[0m\n' "$status" "${value[model_name]}" "$command" "$log" |
    tee -a "$out/results_python.log"
}

# Sets what trains on an entry of gpu_list: -1, 0, 0,1, or machines and GPUs (ip,ip;0,1).
read_devices() {
  local ips=
  [[ $1 == *\;* ]] && ips=${1%%;*}
  gpus=${1##*;} nodes=1 launch= first=${gpus%%,*} visible=$gpus
  if [[ $ips ]]; then
    nodes=$(tr ',' '\n' <<< "$ips" | wc -l) launch=" -m paddle.distributed.launch --ips=$ips"
  elif [[ $gpus == *,* ]]; then
    launch=" -m paddle.distributed.launch"
  fi
  if [[ $gpus == -1 ]]; then
    # The launcher takes an empty CUDA_VISIBLE_DEVICES for a GPU without a name.
    first= visible=${ips:+keep} launch=${launch:+$launch --nproc_per_node=1}
  else
    launch=${launch:+$launch --gpus=$gpus}
  fi
}

# Sets what a trainer trains and exports with. False if its training is null.
read_trainer() {
  local own
  train=${value[norm_train]} exporter=${value[norm_export]} quantised=False
  for own in pact_train:quant_export fpgm_train:fpgm_export distill_train:distill_export train_1:export1 train_2:export2; do
    [[ ${key[${own%:*}]} == "$1" ]] || continue
    train=${value[${own%:*}]} exporter=${value[${own#*:}]}
    [[ ${own%:*} == pact_train ]] && quantised=True
    [[ $1 == to_static_train ]] && train="${value[norm_train]} $train" exporter=${value[norm_export]}
  done
  [[ $train && $train != null ]]
}

train() {  # trainer, auto_cast, use_gpu, epochs, batch size, more arguments, end of the name
  local train exporter quantised extra
  read_trainer "$1" || return
  local name=${1}_gpus_${gpus}_autocast_${2}${7}_nodes_$nodes
  local save=$out/$name use_gpu autocast
  use_gpu=$(arg use_gpu "$3") autocast=$(arg autocast "$2")
  [[ $2 == amp ]] && extra=" Global.use_amp=True Global.scale_loss=1024.0 Global.use_dynamic_loss_scaling=True"
  [[ ${value[mkldnn]} ]] || use_gpu=  # the short layout does not pass it on
  run "$visible" "${name}_train" "$python$launch $train$use_gpu$(arg save_dir "$save")$(arg epochs "$4")$(
    arg pretrained)$autocast$(arg train_batch "$5")$6$extra"
  [[ $mode == benchmark_train ]] && return
  local weights=$save/${value[train_model_name]} model=$save
  is_null eval || run "$first" "${name}_eval" "$python ${value[eval]}$(arg pretrained "$weights")$use_gpu$(arg eval_extra)"
  [[ -z $exporter || $exporter == null ]] && return
  is_null inference_dir || model=$save/${value[inference_dir]}
  run "$first" "${name}_export" "$python $exporter$(arg export_weights "$weights")$(arg export_dir "$save")"
  # The short layout names no pictures for these models.
  infer "${name}_" "$model" "${value[mkldnn]:+${value[images]}}" "$first" "$quantised"
}

infer() {  # start of the logs' names, model, images, CUDA_VISIBLE_DEVICES, whether the model is quantised
  local use visible mkldnn threads tensorrt precision batch
  is_null inference && return
  for use in $(list infer_use_gpu); do
    local cpu=
    [[ $use == False || $use == cpu ]] && cpu=1
    [[ $device == cpu && -z $cpu ]] && continue
    visible=${4:-keep}
    [[ $cpu ]] && visible=
    for mkldnn in $([[ $cpu ]] && list mkldnn || echo null); do
      for threads in $([[ $cpu ]] && list threads || echo null); do
        for tensorrt in $([[ $cpu ]] && echo null || list tensorrt); do
          for precision in $(list precision); do
            [[ $mkldnn == False && $precision == fp16 || $tensorrt == False && $precision == *fp16 ]] && continue
            [[ $cpu && $5 == True && $precision != int8 ]] && continue
            [[ -z $cpu && $precision == *int8 && ($5 == False || $tensorrt == False) ]] && continue
            for batch in $(list infer_batch); do
              run "$visible" "$1python_infer$([[ $cpu ]] && echo _cpu || echo _gpu)$(
                tag usemkldnn "$mkldnn")$(tag threads "$threads")$(tag usetrt "$tensorrt")$(
                tag precision "$precision")$(tag batchsize "$batch")" \
                "$python ${value[inference]}$(arg infer_use_gpu "$use")$(arg mkldnn "$mkldnn")$(
                arg threads "$threads")$(arg tensorrt "$tensorrt")$(arg precision "$precision")$(
                arg infer_model_key "$2")$(arg infer_batch "$batch")$(arg infer_images "$3")$(
                arg benchmark)$(arg infer_extra)"
            done
          done
        done
      done
    done
  done
}

tag() { [[ $2 == null ]] || echo "_$1_$2"; }

train_all() {
  local entry trainer autocast batch precision use_gpu at=0
  for entry in $([[ $device == cpu ]] && echo -1 || list gpu_list); do
    read_devices "$entry"
    use_gpu=$(list use_gpu | sed -n "$((++at))p")
    [[ $device == cpu && $use_gpu == True ]] && use_gpu=False
    [[ $device == cpu && $use_gpu == gpu ]] && use_gpu=cpu
    for autocast in $(list autocast); do
      for trainer in $(list trainer); do
        if [[ $mode != benchmark_train ]]; then
          train "$trainer" "$autocast" "$use_gpu" "$(by_mode epochs)" "$(by_mode train_batch)" "$(arg train_extra)"
          continue
        fi
        for batch in $(list bench_batch); do
          for precision in $(list fp_items); do
            [[ $precision == fp16 ]] && precision=amp
            [[ $launch ]] || is_null profiler ||
              train "$trainer" "$precision" "$use_gpu" "${value[bench_epoch]}" "$batch" "$(arg profiler)" "_bs_${batch}_profiling"
            train "$trainer" "$precision" "$use_gpu" "${value[bench_epoch]}" "$batch" "" "_bs_$batch"
          done
        done
      done
      [[ $mode == benchmark_train ]] && break
    done
  done
}

infer_given() {  # models that are there already; each is exported first if the file says how
  local models exporters quantised at path visible=${gpu:-keep}
  [[ $device == cpu ]] && visible=
  mapfile -t models < <(list infer_model)
  mapfile -t exporters < <(list infer_export)
  mapfile -t quantised < <(list infer_quant)
  for at in "${!models[@]}"; do
    path=${models[at]}
    if [[ ${exporters[at]} && ${exporters[at]} != null ]]; then
      [[ ${value[mkldnn]} ]] || path=${value[export_dir]}
      run "$visible" "export_$at" "$python ${exporters[at]}$(arg export_weights "${models[at]}")$(arg export_dir "$path")"
    fi
    infer "model_${at}_" "$path" "${value[infer_images]}" "$visible" "${quantised[at]}"
  done
}

read_file
set -f  # no value is a pattern
python=$(list python | head -n 1) out=./test_tipc/output/${value[model_name]}/$mode
mkdir -p "$out/logs"
case $mode in
  lite_train_lite_infer | lite_train_whole_infer | whole_train_whole_infer | lite_train_infer | whole_train_infer) train_all ;;
  benchmark_train)
    [[ -v value[bench_batch] ]] || { echo "$file: benchmark_train needs the section train_benchmark_params"; exit 2; }
    for flag in $(tr ';' '\n' <<< "${value[flags]}"); do [[ $flag == null ]] || export "${flag?}"; done
    train_all
    ;;
  whole_infer | infer) infer_given ;;
  *)
    echo "unknown mode $mode: the standard script runs lite_train_lite_infer, lite_train_whole_infer," \
      "whole_train_whole_infer, whole_infer and benchmark_train"
    exit 2
    ;;
esac
