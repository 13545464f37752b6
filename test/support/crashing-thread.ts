throw new Error('the learner broke')
