datasets = [
    dict(abbr='sums_ppl', eval_cfg=dict(evaluator=dict(type='opencompass.openicl.icl_evaluator.AccEvaluator')),
        infer_cfg=dict(inferencer=dict(type='opencompass.openicl.icl_inferencer.PPLInferencer'),
            retriever=dict(fix_id_list=[0], type='opencompass.openicl.icl_retriever.FixKRetriever')),
        path='opencompass/sums', reader_cfg=dict(input_columns=['input'], output_column='target'), type='x.SumsDataset'),
    dict(abbr='sums_gen', infer_cfg=dict(inferencer=dict(max_out_len=64, type='opencompass.openicl.icl_inferencer.GenInferencer'),
            retriever=dict(type='opencompass.openicl.icl_retriever.ZeroRetriever')), path='opencompass/sums', type='x.SumsDataset'),
]
models = [
    dict(abbr='tiny-4bit', batch_size=8, key='sk-secret', api_key='sk-secret', max_out_len=100, max_seq_len=2048,
        model_kwargs=dict(device_map='auto', load_in_4bit=True, torch_dtype='torch.float16'), path='org/tiny',
        type='opencompass.models.HuggingFaceCausalLM', run_cfg=dict(num_gpus=1)),
    dict(max_out_len=100, path='org/small-7b', type='opencompass.models.huggingface.HuggingFace', func=lambda x: __import__('os').system('touch /tmp/trackr_was_run')),
]
work_dir = './outputs/default/20250101_120000'
